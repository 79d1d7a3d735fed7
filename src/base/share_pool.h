/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded number of places that owners share: connections, threads, look-ups, descriptors.
 *
 * No owner has more than its share, a quarter unless the pool says otherwise, and the last places
 * are the operator's: so neither one owner nor all of them together keep the operator out. An owner
 * is a number, whose meaning the user of the pool chooses. Any thread may call the functions.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

struct share_pool;

/* The places of one owner in a pool; it exists while the owner has any. */
struct share;

struct share_limits {
	unsigned limit;	      /* places in all */
	unsigned per_owner;   /* of these, that one owner may have */
	unsigned reserve;     /* of these, that only the operator may have */
	bool spares_operator; /* per_owner is not for the operator */
};

/* A quarter for each owner, at least one; a sixteenth for the operator, at least one of four or more. */
struct share_limits share_limits_of(unsigned limit);

struct share_pool *share_pool_new(const struct share_limits *limits);

/* All places must have been given back. */
void share_pool_free(struct share_pool *pool);

/* Takes a place. -EDQUOT: the owner has its share; -EAGAIN: there is none left for it. */
int share_pool_take(struct share_pool *pool, uint64_t owner, bool is_operator,
	struct share **ret_share) must_check;

/* Gives a place back; NULL is none. */
void share_give_back(struct share *share);

uint64_t share_owner(const struct share *share);

/* How many places the owner has; the number may change at any time. */
unsigned share_used(const struct share *share);

unsigned share_pool_used(struct share_pool *pool);
