/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last bytes that a command wrote. The kernel counts no writes that found a disk full, so what a program
 * says itself is the only evidence that one of its own did; and a sandbox without a network has nobody who would see
 * what is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_TAIL_BYTES 2048

struct output_tail {
	uint8_t bytes[OUTPUT_TAIL_BYTES];
	size_t len;
};

void output_tail_add(struct output_tail *tail, const uint8_t *data, size_t len);

/* Whether it has the words of ENOSPC or EDQUOT, as C libraries and languages put them. */
bool output_tail_tells_full_disk(const struct output_tail *tail);

/* Whether it has the words of a name that was not found or of a network that is not there. */
bool output_tail_tells_no_network(const struct output_tail *tail);
