/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the memory of a daemon that runs for months near what it uses.
 *
 * The C library gives each thread an arena of its own, up to eight for each processor, and an arena keeps
 * what a large answer once took: a hundred lists of a thousand sandboxes cost tens of megabytes for good.
 */
#pragma once

/* Before the first thread starts: lets all threads share few arenas. */
void heap_use_few_arenas(void);

/* Gives free memory back to the kernel, if it has become much; takes milliseconds then. */
void heap_give_back(void);
