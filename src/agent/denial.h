/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the seccomp filter refuses. Whoever makes one waits in the kernel, which tells the
 * agent; the agent says EPERM, and so knows what was refused to whom.
 *
 * It never says anything else: to let a call through is in the agent's power, and so its integrity is
 * part of this wall. It must not make such a call itself, nor may a child that it stands still for
 * (launch.h): nobody would answer.
 */
#pragma once

#include "base/mem.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A call that waits for its answer. */
struct denial {
	uint64_t id;
	pid_t thread;	 /* who made it; still there, unless it was killed meanwhile */
	uint32_t number; /* of the system call */
};

/*
 * The next one, of the filter's listener. Only after the listener was reported readable, and once for
 * each time: otherwise it would block. False if who made it has gone.
 */
bool denial_receive(int listener_fd, struct denial *ret_denial) must_check;

/* EPERM. False if nobody waits any more: a signal came first, and the call may come again. */
bool denial_answer(int listener_fd, const struct denial *denial) must_check;

/* What was refused to one command: the first few different calls. */
struct denial_list {
	uint32_t count;
	struct {
		uint32_t number;
		uint32_t times;
	} calls[AGENT_DENIED_MAX];
};

void denial_note(struct denial_list *list, uint32_t number);
