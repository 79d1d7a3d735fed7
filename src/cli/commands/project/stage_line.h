/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a launch as they run. On a terminal the last line is that of the stage that runs: how long it has taken, and
 * what it said last. What is over is a line of its own, as it is where there is no terminal.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STAGE_LINE_TEXT_MAX 256

struct stage_line {
	bool is_verbose, is_shown;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread; /* draws the time again each second */
	bool is_over, has_line;
	uint64_t begun_ms;
	char stage[STAGE_LINE_TEXT_MAX], said[STAGE_LINE_TEXT_MAX];
};

void stage_line_init(struct stage_line *line, bool is_verbose);

/* An event of a launch: {"stage", "status", "log", "duration_ms"}. */
void stage_line_tell(struct stage_line *line, const json_t *event);

/* Nothing is left of the line that was drawn. */
void stage_line_fini(struct stage_line *line);
