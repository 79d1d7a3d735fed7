/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that stand for names. A program that asks for a name is told one; when it connects to it,
 * the name is known again. They are given out one after the other, and the last STAND_IN_MAX names are
 * remembered: one that was forgotten stands for nobody until all others have been given out, so that
 * no program ever reaches another name than the one it asked for.
 */
#pragma once

#include "model/address.h"

#define STAND_IN_MAX   1024
#define STAND_IN_TTL_S 30

struct stand_in {
	char *name;	 /* NULL: none yet */
	uint32_t offset; /* of its address in the range */
};

struct stand_ins {
	struct stand_in *places; /* STAND_IN_MAX, each at its offset's rest; NULL until the first */
	uint32_t next;		 /* offset to be given out */
};

void stand_ins_fini(struct stand_ins *stand_ins);

/* IPv4; stand_in_as_v6 gives the one of IPv6 that stands for the same name. */
struct address stand_in_for(struct stand_ins *stand_ins, const char *name);
struct address stand_in_as_v6(struct address stand_in);

/* The name it stands for, or NULL. */
const char *stand_in_name(const struct stand_ins *stand_ins, struct address address);

/* Whether it is of the range, whether or not it stands for somebody. */
bool stand_in_is_one(struct address address);
