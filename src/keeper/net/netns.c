/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/net/netns.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/net/transparent_proxy.h"
#include "wire/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
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

static void come_back(int own_fd)
{
	if (setns(own_fd, CLONE_NEWNET) < 0)
		abort();
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
	come_back(own_fd);
	if (r == 0)
		*ret_fd = fd;
	return r;
}

/* Every process inside may use low ports and ping: none has a capability over this namespace. */
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

/*
 * A socket of IPv6 serves both versions; IPv4 only where that is asked for, or the kernel has no
 * IPv6.
 */
static int open_tcp(bool wants_v6, int *ret_family)
{
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	auto_fd int sock = wants_v6 ? socket(AF_INET6, type, 0) : -1;
	int no = 0;

	*ret_family = AF_INET6;
	if (sock >= 0 && setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0)
		return take_fd(&sock);
	*ret_family = AF_INET;
	return socket(AF_INET, type, 0);
}

/* --- egress --- */

#define EGRESS_BACKLOG 1024

static const struct {
	int type;
	uint16_t port;
	bool is_transparent; /* takes connections to foreign addresses */
} sockets[KEEPER_EGRESS_SOCKET_COUNT] = {
	[KEEPER_EGRESS_PROXY] = {SOCK_STREAM, EGRESS_PROXY_PORT, true},
	[KEEPER_EGRESS_DNS] = {SOCK_DGRAM, EGRESS_DNS_PORT, false},
	[KEEPER_EGRESS_DNS_STREAM] = {SOCK_STREAM, EGRESS_DNS_PORT, false},
};

static int bind_any(int sock, int family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	return family == AF_INET ? bind(sock, (const struct sockaddr *)&v4, sizeof(v4))
				 : bind(sock, (const struct sockaddr *)&v6, sizeof(v6));
}

static int open_exit(size_t i, bool has_v6)
{
	int family = AF_INET, yes = 1;
	auto_fd int sock =
		sockets[i].type == SOCK_STREAM
			? open_tcp(sockets[i].is_transparent && has_v6, &family)
			: socket(family, sockets[i].type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	if (sockets[i].is_transparent &&
		setsockopt(sock, IPPROTO_IP, IP_TRANSPARENT, &yes, sizeof(yes)) < 0)
		return -errno;
	/* A question to any server arrives here; the answer must come from that address. */
	if (sockets[i].type == SOCK_DGRAM &&
		setsockopt(sock, IPPROTO_IP, IP_PKTINFO, &yes, sizeof(yes)) < 0)
		return -errno;
	if (bind_any(sock, family, sockets[i].port) < 0 ||
		(sockets[i].type == SOCK_STREAM && listen(sock, EGRESS_BACKLOG) < 0))
		return -errno;
	return take_fd(&sock);
}

static int open_egress_sockets(bool has_v6, int fds[KEEPER_EGRESS_SOCKET_COUNT], struct err *err)
{
	for (size_t i = 0; i < KEEPER_EGRESS_SOCKET_COUNT; i++) {
		fds[i] = open_exit(i, has_v6);
		if (fds[i] < 0)
			return err_from(
				err, fds[i], "listen on port %u of the sandbox", sockets[i].port);
	}
	return 0;
}

int netns_open_egress(int own_fd, struct network *network, struct err *err)
{
	int fds[KEEPER_EGRESS_SOCKET_COUNT] = {-1, -1, -1}, r;
	struct err why;
	bool has_v6 = false;

	if (setns(network->netns_fd, CLONE_NEWNET) < 0)
		return err_sys(err, "enter the network namespace");
	network->is_transparent = transparent_proxy_make(&has_v6, &why) == 0;
	if (!network->is_transparent)
		log_warning("only proxies lead out: %s", why.message);
	r = open_egress_sockets(has_v6, fds, err);
	come_back(own_fd);
	for (size_t i = 0; i < KEEPER_EGRESS_SOCKET_COUNT; i++) {
		if (r == 0)
			network->sockets[i] = fds[i];
		else
			fd_close(fds[i]);
	}
	return r;
}

int netns_open_socket(int own_fd, int netns_fd, int *ret_fd, struct err *err)
{
	int fd, family, r = 0;

	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return err_sys(err, "enter the network namespace");
	fd = open_tcp(true, &family);
	if (fd < 0)
		r = err_sys(err, "make a socket in the sandbox");
	come_back(own_fd);
	if (r == 0)
		*ret_fd = fd;
	return r;
}
