/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all attack programs share. Each tries a family of things from inside a sandbox and prints a line
 * for each: its name, a tab, what came of it. They judge nothing; tests/e2e/isolation*.test.mjs do, by
 * these lines and by what they see from outside.
 *
 * Built by the tests with the host's compiler, without any part of Sandlot.
 */
#pragma once

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "done" if r says that it worked, else the name of errno. */
static inline void tell(long r, const char *fmt, ...)
{
	int errnum = errno;
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\t%s\n", r >= 0 ? "done" : strerrorname_np(errnum));
	fflush(stdout);
	errno = 0;
}

static inline void tell_count(const char *name, unsigned long count)
{
	printf("%s\t%lu\n", name, count);
	fflush(stdout);
}

/* Runs f in a child, for what would change or end the caller; its exit status, 128 + signal if killed. */
static inline int in_child(void (*f)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		f(arg);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
