/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command reads and writes: pipes or a terminal, the agent's ends of them, and the output that was not
 * acknowledged yet. The ends are watched as WATCH_STDIN, _STDOUT, _STDERR or _TERMINAL of the command's id.
 */
#pragma once

#include "agent/backlog.h"
#include "agent/inlet.h"
#include "agent/launch.h"
#include "agent/outlet.h"
#include "agent/payload.h"

#include <stdbool.h>
#include <stdint.h>

struct job_streams {
	struct inlet inlet;
	struct outlet outlets[2]; /* stdout, stderr; a terminal is the first */
	struct backlog backlog;
};

/* With nothing open. */
void job_streams_init(struct job_streams *streams);

/*
 * Opens what exec asks for. The command's ends go to the seat, also some of them on failure; they are closed
 * by job_streams_close_seat() once it has them.
 */
int job_streams_open(struct job_streams *streams, const struct launch_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct launch_seat *seat)
	must_check;
void job_streams_close_seat(struct launch_seat *seat);

/* Closes all, and drops what was not acknowledged. */
void job_streams_close(struct job_streams *streams);

/* Reads all outlets once; false when there is nothing to read, or no room. */
bool job_streams_read(struct job_streams *streams);

/* The command ended: takes no more input, and only the output that is there now. */
void job_streams_drain(struct job_streams *streams);

/* Whether all output was read and sent. */
bool job_streams_are_done(const struct job_streams *streams);

/* Of a terminal; else nothing happens. */
void job_streams_resize(struct job_streams *streams, uint16_t columns, uint16_t rows);
