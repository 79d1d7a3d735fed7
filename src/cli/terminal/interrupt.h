/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGINT, SIGTERM and SIGHUP, taken when the program has time for them. Once held they do not end the process:
 * while they are watched they end what is under way with -EINTR, else they wait. Nothing that must not be cut
 * in the middle (creating, removing) is watched.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>

struct interrupt {
	int fd; /* -1: signals are not held */
	bool is_watched;
	int signal; /* the one that ended something, or 0 */
};

#define INTERRUPT_NONE ((struct interrupt){.fd = -1})

/* Once more does nothing. */
int interrupt_hold(struct interrupt *interrupt, struct err *err) must_check;
void interrupt_fini(struct interrupt *interrupt);

/* Without any that are held nothing is watched. */
void interrupt_watch(struct interrupt *interrupt, bool is_watched);

/* The descriptor that can be read when a watched signal has come, or -1. */
int interrupt_fd(const struct interrupt *interrupt);

/* -EINTR if a watched signal has come. */
int interrupt_check(struct interrupt *interrupt, struct err *err) must_check;

/*
 * Waits for events on fd (-1: for none), for at most wait_ms: 1, 0 when the time is over, or -EINTR
 * for a watched signal.
 */
int interrupt_wait(struct interrupt *interrupt, int fd, short events, int wait_ms, struct err *err)
	must_check;
