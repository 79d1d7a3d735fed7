/* SPDX-License-Identifier: Apache-2.0 */
/* How far a copy is: one line that overwrites itself, only if standard error is a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_shown;
	bool has_line;
	int64_t total; /* -1: not known */
	uint64_t done;
	uint64_t begin_ms;
	uint64_t last_ms;
};

void progress_init(struct progress *progress, int64_t total);
void progress_add(struct progress *progress, uint64_t bytes);

/* Takes the line away. */
void progress_fini(struct progress *progress);
