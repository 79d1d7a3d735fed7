/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listener.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/number.h"
#include "http/address_key.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define OUTPUT_BACKLOG 1024

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int bad_address(const char *text, struct err *err)
{
	return err_set(err, ERR_INVALID,
		"\"%.80s\" is no address to listen on; it must look like 127.0.0.1:9090 or "
		"[::1]:9090",
		text);
}

static int parse(
	const char *text, union address *address, socklen_t *len, char *host, struct err *err)
{
	const char *colon = strrchr(text, ':');
	size_t host_len = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	if (host_len == 0 || host_len >= LISTENER_HOST_MAX ||
		number_parse(colon + 1, 0, UINT16_MAX, &port) < 0)
		return bad_address(text, err);
	memset(address, 0, sizeof(*address));
	snprintf(host, LISTENER_HOST_MAX, "%.*s", (int)host_len, text);
	if (host[0] == '[' && host[host_len - 1] == ']') {
		char inner[LISTENER_HOST_MAX];

		snprintf(inner, sizeof(inner), "%.*s", (int)host_len - 2, host + 1);
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_port = htons((uint16_t)port);
		*len = sizeof(address->v6);
		return inet_pton(AF_INET6, inner, &address->v6.sin6_addr) == 1
			       ? 0
			       : bad_address(text, err);
	}
	address->v4.sin_family = AF_INET;
	address->v4.sin_port = htons((uint16_t)port);
	*len = sizeof(address->v4);
	return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 ? 0 : bad_address(text, err);
}

/*
 * Accepted sockets inherit these. They find the client that vanished without a word (a laptop put to
 * sleep): by what it does not acknowledge, or on a quiet connection by probes.
 */
static void set_keepalive(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 60},
		{IPPROTO_TCP, TCP_KEEPINTVL, 15},
		{IPPROTO_TCP, TCP_KEEPCNT, 4},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, 120000},
	};

	for (size_t i = 0; i < array_len(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			sizeof(options[i].value));
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

static int explain_bind(const char *text, struct err *err)
{
	int errnum = errno;

	err_explain(err, ERR_CONFLICT, "cannot_listen", NULL, "cannot listen on %s: %s", text,
		strerror(errnum));
	return -errnum;
}

int listener_open(const char *text, struct listener *ret_listener, struct err *err)
{
	struct listener listener = {0};
	union address address;
	socklen_t len;
	auto_fd int fd = -1;
	int one = 1;
	int r;

	r = parse(text, &address, &len, listener.host, err);
	if (r < 0)
		return r;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, "create a socket to listen on %s", text);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (address.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	set_keepalive(fd);
	listener.is_loopback = is_loopback(&address);
	if (bind(fd, &address.any, len) < 0 || listen(fd, OUTPUT_BACKLOG) < 0)
		return explain_bind(text, err);
	if (getsockname(fd, &address.any, &len) < 0)
		return err_sys(err, "ask for the address of %s", text);
	listener.port = ntohs(
		address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
	listener.fd = take_fd(&fd);
	*ret_listener = listener;
	return 0;
}

int listener_open_unix(
	const char *path, uid_t owner, gid_t group, struct listener *ret_listener, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, "create a socket to listen on %s", path);
	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "the path %s is too long for a socket", path);
	strcpy(address.sun_path, path);
	unlink(path);
	/* Nobody connects before it has its owner and mode: it does not listen yet. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		chown(path, owner, group) < 0 || chmod(path, 0660) < 0 ||
		listen(fd, OUTPUT_BACKLOG) < 0)
		return explain_bind(path, err);
	*ret_listener =
		(struct listener){.fd = take_fd(&fd), .host = "localhost", .is_loopback = true};
	return 0;
}

bool listener_is_unix(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_UNIX;
}

int listener_accept(const struct listener *listener, struct arrival *ret_arrival)
{
	struct arrival arrival = {.address_len = sizeof(arrival.address)};
	int r = 0;

	arrival.fd = accept4(listener->fd, (struct sockaddr *)&arrival.address,
		&arrival.address_len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (arrival.fd < 0)
		return -errno;
	arrival.since_us = clock_steady_us();
	arrival.is_local = listener_is_unix(&arrival.address) ||
			   is_loopback((const union address *)&arrival.address);
	if (listener->terminator)
		r = terminator_wrap(listener->terminator, arrival.fd,
			address_key_of((struct sockaddr *)&arrival.address), &arrival.fd,
			&arrival.tls_peer);
	if (r == 0)
		*ret_arrival = arrival;
	return r;
}

void listener_drop(struct arrival *arrival)
{
	fd_close(take_fd(&arrival->fd));
	tls_peer_unref(take_ptr(&arrival->tls_peer));
}

const char *listener_scheme(const struct listener *listener)
{
	return listener->terminator ? "https" : "http";
}

bool listener_has_default_port(const struct listener *listener)
{
	return listener->port == (listener->terminator ? 443 : 80);
}

void listener_format(const struct sockaddr_storage *address, char *text, size_t size)
{
	const union address *known = (const void *)address;
	const void *number = &known->v4.sin_addr;

	if (listener_is_unix(address)) {
		snprintf(text, size, "unix");
		return;
	}
	if (address->ss_family == AF_INET6)
		number = &known->v6.sin6_addr;
	if (!inet_ntop(address->ss_family, number, text, (socklen_t)size))
		text[0] = '\0';
}
