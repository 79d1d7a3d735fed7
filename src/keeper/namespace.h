/* SPDX-License-Identifier: Apache-2.0 */
/* A namespace that exists without a process in it: made by a short-lived child, held by descriptor. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct namespace_job {
	const char *file;	 /* its name in /proc/PID/ns */
	int (*enter)(void *arg); /* in the child: makes it and is in it then; 0 or -errno */
	/* In the parent, while the child waits; may be NULL. */
	int (*adjust)(pid_t child, void *arg, struct err *err);
};

int namespace_make(const struct namespace_job *job, void *arg, int *ret_fd, struct err *err)
	must_check;
