/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sandbox is stopped next when the host runs out of memory.
 *
 * All owners have the same share: what their sandboxes may hold together so that the host keeps its reserve, divided by
 * their number. The owner who holds most goes first: of its sandboxes the idle ones, the one left alone longest before
 * all others; then, if it holds more than its share, the largest that is in use. Only when that owner has none left
 * that may be stopped is it the next owner's turn. So nobody loses a sandbox before the one who took the memory.
 *
 * If all sandboxes together hold less than what is missing, the cause lies outside, and none that is in use is stopped.
 */
#pragma once

#include "model/sandbox/sandbox_record.h"

struct memory_user {
	struct owner owner;
	uint64_t bytes; /* what the sandbox holds */
	bool is_idle;
	int64_t idle_ms;
	size_t place; /* the caller's own */
};

struct memory_choice {
	size_t index;	      /* of the one to stop */
	uint64_t owner_bytes; /* what its owner holds */
	uint64_t share_bytes; /* what each owner may hold */
};

/* Sorts by owner, which memory_pressure_choose() needs. */
void memory_pressure_sort(struct memory_user *users, size_t count);

/* False if the host has its reserve, or none may be stopped. */
bool memory_pressure_choose(const struct memory_user *users, size_t count, uint64_t available_bytes,
	uint64_t reserve_bytes, struct memory_choice *ret_choice);
