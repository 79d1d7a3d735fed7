/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/netns.h"

#include "base/fd.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const char own_path[] = "/proc/self/ns/net";

int netns_open_own(int *ret_fd, struct err *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(err, "make the keeper's network namespace");
	*ret_fd = open(own_path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open %s", own_path) : 0;
}

static int raise_loopback(struct err *err)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	auto_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0)
		return err_sys(err, "bring up lo");
	return 0;
}

int netns_make(int own_fd, int *ret_fd, struct err *err)
{
	int fd = -1, r;

	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(err, "make a network namespace");
	r = raise_loopback(err);
	if (r == 0) {
		fd = open(own_path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			r = err_sys(err, "open %s", own_path);
	}
	if (setns(own_fd, CLONE_NEWNET) < 0)
		abort();
	if (r == 0)
		*ret_fd = fd;
	return r;
}

/* Low ports and ping are everybody's: nobody inside has a capability over this namespace. */
int netns_open_ports(uint32_t base_gid, uint32_t count, struct err *err)
{
	char gids[32];
	const struct {
		const char *path, *value;
	} knobs[] = {
		{"proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
		{"proc/sys/net/ipv4/ping_group_range", gids},
	};

	snprintf(gids, sizeof(gids), "%u %u", base_gid, base_gid + count - 1);
	for (size_t i = 0; i < array_len(knobs); i++) {
		int r = fd_write_file(AT_FDCWD, knobs[i].path, knobs[i].value);

		if (r < 0)
			return err_from(err, r, "write /%s", knobs[i].path);
	}
	return 0;
}
