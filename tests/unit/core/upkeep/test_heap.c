/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/heap.h"

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

static void what_was_freed_is_given_back(void **state)
{
	static char *blocks[BLOCKS];
	long before;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their heap is not that of the C library */
#endif
	heap_use_few_arenas();
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_SIZE);
		assert_non_null(blocks[i]);
		memset(blocks[i], 1, BLOCK_SIZE);
	}
	/* The last one stays: so the heap does not shrink by itself. */
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	before = resident_bytes();
	heap_give_back();
	assert_true(resident_bytes() < before - (long)BLOCKS * BLOCK_SIZE / 2);
	free(blocks[BLOCKS - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_freed_is_given_back)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
