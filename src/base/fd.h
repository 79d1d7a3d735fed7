/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: scope-bound closing, and whole reads and writes. */
#pragma once

#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define auto_fd auto_(fd_closep)

/* Gives a descriptor away: returns it and leaves -1 behind. */
static inline int take_fd(int *fdp)
{
	int fd = *fdp;

	*fdp = -1;
	return fd;
}

/* Closes fd if it is one; errno survives. Never retried: on Linux the descriptor is gone either way. */
void fd_close(int fd);

static inline void fd_closep(int *fdp)
{
	fd_close(*fdp);
}

/*
 * Read or write exactly len bytes on a blocking descriptor. 0, or -errno; an end of file in the
 * middle is -ENODATA, an expired SO_RCVTIMEO or SO_SNDTIMEO is -EAGAIN. Sockets never raise SIGPIPE.
 */
int fd_read_full(int fd, void *data, size_t len) must_check;
int fd_write_full(int fd, const void *data, size_t len) must_check;

/* Reads a whole small file below dirfd (AT_FDCWD for none) into text, ended by a NUL byte. */
ssize_t fd_read_file(int dirfd, const char *path, char *text, size_t size) must_check;

/* What ordinary users can still write to the file system of fd, in bytes; UINT64_MAX if that is not known. */
uint64_t fd_free_bytes(int fd);

/* Writes text into an existing file of the kernel (sysctl, cgroup) below dirfd. */
int fd_write_file(int dirfd, const char *path, const char *text) must_check;

int fd_set_nonblocking(int fd) must_check;

/* The family of a socket (AF_*); AF_UNSPEC if it is no socket. */
int fd_family(int sock);

/* Limits how long a blocking read or write on a socket may take; 0 means for ever. */
int fd_set_timeout(int sock, int64_t timeout_ms) must_check;
