/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces, one for each uid range.
 *
 * The namespace is created by the range's own first uid, not by root: the kernel charges inotify
 * watches, timers and locked memory to the creator, and with root as the creator one sandbox could
 * use up everybody's share. It maps 65536 ids, so root inside is nobody in particular outside.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <stdint.h>

/* The uid (and gid) outside that is root inside. */
static inline uint32_t userns_base(uint32_t slot)
{
	return KEEPER_UID_FIRST + slot * KEEPER_UID_COUNT;
}

int userns_make(uint32_t slot, int *ret_fd, struct err *err) must_check;
