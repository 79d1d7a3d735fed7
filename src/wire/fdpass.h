/* SPDX-License-Identifier: Apache-2.0 */
/* One message on a unix socket, with descriptors beside it. */
#pragma once

#include "base/mem.h"

#include <sys/types.h>

#define FDPASS_MAX 6

/* Sends len bytes and count descriptors; the bytes sent, or -errno. flags as for sendmsg. */
ssize_t fdpass_send(int sock, const void *data, size_t len, const int *fds, size_t count, int flags)
	must_check;

/*
 * Receives up to size bytes and up to FDPASS_MAX descriptors, which are close-on-exec. Returns the
 * bytes received (0 at the end), or -errno. Unused places of fds are -1. A message that was cut, in
 * its bytes or its descriptors, is -EPROTO and leaves no descriptor behind.
 */
ssize_t fdpass_recv(int sock, void *data, size_t size, int fds[FDPASS_MAX], int flags) must_check;

/*
 * Receives one packet of exactly size bytes from a SOCK_SEQPACKET socket; descriptors beside it are
 * dropped. 1, 0 at the end, or -errno. A packet of any other size is -EPROTO: the kernel would cut
 * a longer one in silence, and the rest would be taken for a message that was never sent.
 */
int fdpass_recv_packet(int sock, void *data, size_t size, int flags) must_check;
