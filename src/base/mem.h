/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and scope-bound cleanup.
 *
 * Small allocations of a size known at compile time abort when memory runs out: the program could
 * not continue. Whatever is sized by input from outside goes into a struct buf, which has a
 * maximum.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* For a large array that is written before it is read: clearing it would cost more than its use. */
#define not_cleared __attribute__((uninitialized))

#define must_check	  __attribute__((warn_unused_result))
#define auto_(destructor) __attribute__((cleanup(destructor)))
#define auto_free	  auto_(mem_freep)

/* Gives a pointer away: returns it and leaves NULL behind, so that auto_free does nothing. */
#define take_ptr(pp)                                                                               \
	({                                                                                         \
		__typeof__(*(pp)) taken_ = *(pp);                                                  \
		*(pp) = NULL;                                                                      \
		taken_;                                                                            \
	})

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

static inline void mem_freep(void *pp)
{
	free(*(void **)pp);
}

/* Zeroed memory, a copied string, a formatted string: never NULL. */
void *mem_new(size_t size);
char *mem_strdup(const char *s);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
