/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the seccomp filter refuses. The calling thread waits in the kernel, which tells
 * the agent; the agent answers EPERM, and so knows which call was refused to which command.
 *
 * The agent never answers anything else: it has the power to let a call through, so its integrity
 * is part of this wall. It must not make such a call itself, nor may a child that it waits for
 * (spawn.h): no process would answer.
 */
#pragma once

#include "base/mem.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A call that waits for its answer. */
struct denied_syscall {
	uint64_t id;
	pid_t thread;	 /* the caller; it may have been killed meanwhile */
	uint32_t number; /* of the system call */
};

/*
 * Receives the next call from the filter's listener. Call it only after the listener was reported
 * readable, and once for each time: otherwise it would block. False if the caller is gone.
 */
bool denied_syscall_receive(int listener_fd, struct denied_syscall *ret_denial) must_check;

/*
 * Answers EPERM. False if the caller no longer waits: a signal came first, and it may call again.
 */
bool denied_syscall_answer(int listener_fd, const struct denied_syscall *denied_syscall) must_check;

/* The first few different calls that were refused to one command. */
struct denied_syscall_list {
	uint32_t count;
	struct {
		uint32_t number;
		uint32_t times;
	} calls[AGENT_DENIED_MAX];
};

void denied_syscall_note(struct denied_syscall_list *list, uint32_t number);
