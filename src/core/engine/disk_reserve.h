/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the host's disk that is kept free. Disks of sandboxes are sparse: what they promise together may be
 * more than there is, and ext4 loses what it cannot write to the host. So while less than the reserve is free
 * nothing begins that may write without bound: no create, no start, no upload. What runs goes on, but the disks of
 * sandboxes may grow by a small share of the reserve only, so that they are full inside before the host is.
 */
#pragma once

#include "base/err.h"
#include "core/engine/engine.h"

/* Whether the host has less free than the reserve. */
bool disk_reserve_is_short(const struct engine *engine);

/* By how much the disk of each running sandbox may still grow then. */
uint64_t disk_reserve_growth(const struct engine *engine);

/* Each second: holds the disks of running sandboxes back, or lets them go. */
void disk_reserve_enforce(struct engine *engine);

/* 0, or ERR_NO_SPACE with what to do. */
int disk_reserve_check(const struct engine *engine, struct err *err) must_check;

/* The same for what is about to write so many bytes. */
int disk_reserve_check_more(const struct engine *engine, uint64_t bytes, struct err *err)
	must_check;
