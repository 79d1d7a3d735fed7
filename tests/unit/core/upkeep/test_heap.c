/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/heap.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCKS	   4096
#define BLOCK_SIZE (8u << 10)

static long resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long pages;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%*d %ld", &pages), 1);
	fclose(statm);
	return pages * sysconf(_SC_PAGESIZE);
}

static char *blocks[BLOCKS];

static void fill(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_SIZE);
		assert_non_null(blocks[i]);
		memset(blocks[i], 1, BLOCK_SIZE);
	}
}

/* The last one stays: so the heap does not shrink by itself. */
static void empty(void)
{
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
}

static void what_was_freed_is_given_back_once_it_is_quiet(void **state)
{
	struct heap_look look = {0};
	long before, after;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their heap is not that of the C library */
#endif
	heap_use_few_arenas();
	for (int i = 0; i < 2; i++) {
		fill();
		heap_give_back(&look);
		empty();
		before = resident_bytes();
		heap_give_back(&look);
		assert_true(resident_bytes() > before - (long)BLOCK_SIZE * BLOCKS / 8);
		heap_give_back(&look);
		after = resident_bytes();
		assert_true(after < before - (long)BLOCKS * BLOCK_SIZE / 2);
		free(blocks[BLOCKS - 1]);
	}
}

/* As memory that is used in part does: a page with one block in it cannot be given back. */
static void what_cannot_be_given_back_does_not_hide_what_can(void **state)
{
	static char *parts[8 * BLOCKS];
	struct heap_look look = {0};
	long before;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip();
#endif
	for (size_t i = 0; i < array_len(parts); i++) {
		parts[i] = malloc(1024);
		assert_non_null(parts[i]);
		memset(parts[i], 1, 1024);
	}
	for (size_t i = 0; i < array_len(parts); i++) {
		if (i % 2)
			free(parts[i]);
	}
	for (int i = 0; i < 3; i++)
		heap_give_back(&look);
	assert_true(look.stays > 4u << 20);
	fill();
	empty();
	before = resident_bytes();
	for (int i = 0; i < 3; i++)
		heap_give_back(&look);
	assert_true(resident_bytes() < before - (long)BLOCKS * BLOCK_SIZE / 4);
	for (size_t i = 0; i < array_len(parts); i += 2)
		free(parts[i]);
	free(blocks[BLOCKS - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_freed_is_given_back_once_it_is_quiet),
		cmocka_unit_test(what_cannot_be_given_back_does_not_hide_what_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
