/* SPDX-License-Identifier: Apache-2.0 */
/* A namespace without a process in it: a short-lived child makes it, and a descriptor keeps it. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct namespace_job {
	const char *file;	 /* its name in /proc/PID/ns */
	int (*enter)(void *arg); /* in the child: makes the namespace and enters it; 0 or -errno */
	/* In the parent, while the child waits; may be NULL. */
	int (*adjust)(pid_t child, void *arg, struct err *err);
};

int namespace_make(const struct namespace_job *process, void *arg, int *ret_fd, struct err *err)
	must_check;
