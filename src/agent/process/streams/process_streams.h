/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command reads and writes: pipes or a terminal, the agent's ends of them, and the output
 * that was not acknowledged yet. The ends are watched as WATCH_STDIN, _STDOUT, _STDERR,
 * _RESULT or _TERMINAL
 * of the command's id.
 */
#pragma once

#include "agent/link/output_backlog.h"
#include "agent/link/payload.h"
#include "agent/process/start/spawn.h"
#include "agent/process/streams/output_pipe.h"
#include "agent/process/streams/stdin_pipe.h"

#include <stdbool.h>
#include <stdint.h>

struct process_streams {
	struct stdin_pipe stdin_pipe;
	struct output_pipe output_pipes[3]; /* stdout, stderr, result; a terminal is the first */
	struct output_backlog backlog;
	struct output_tail tail; /* of all */
};

/* With nothing open. */
void process_streams_init(struct process_streams *streams);

/*
 * Opens what exec asks for. The command's ends go to target, some of them also on failure;
 * process_streams_close_target() closes them once the command has them.
 */
int process_streams_open(struct process_streams *streams, const struct spawn_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct spawn_target *target)
	must_check;
void process_streams_close_target(struct spawn_target *target);

/* Closes all descriptors, and drops output that was not acknowledged. */
void process_streams_close(struct process_streams *streams);

/* Reads all output pipes once; false when there is nothing to read, or no room. */
bool process_streams_read(struct process_streams *streams);

/*
 * Called when the command ended: takes no more input, and only the output that its pipes have now.
 */
void process_streams_drain(struct process_streams *streams);

/* Whether all output was read and sent. */
bool process_streams_are_done(const struct process_streams *streams);

/* Resizes a terminal; does nothing for pipes. */
void process_streams_resize(struct process_streams *streams, uint16_t columns, uint16_t rows);
