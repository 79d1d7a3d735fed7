/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the memory of a daemon that runs for months near what it uses.
 *
 * The C library gives each thread an arena of its own, up to eight for each processor, and an arena keeps
 * what a large answer once took: a hundred lists of a thousand sandboxes cost tens of megabytes for good. A
 * thread also keeps a few blocks of each size to itself until it ends, and each of them holds its page: after
 * large work memory is free once the workers that it needed have gone too (http/workers.h).
 */
#pragma once

#include <stddef.h>

/* Before the first thread starts: lets all threads share few arenas. */
void heap_use_few_arenas(void);

/* What the last look at the heap found; zeroed at first. */
struct heap_look {
	size_t used;  /* by what is allocated */
	size_t stays; /* in memory though it is not used, and not tried again for a minute */
	unsigned count;
};

/*
 * Called every few seconds: gives free memory back to the kernel if that is much, and much more than what was taken or freed
 * since the last look. Large work that goes on would take it again at once. It takes milliseconds then.
 */
void heap_give_back(struct heap_look *look);
