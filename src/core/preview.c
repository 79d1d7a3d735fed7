/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview.h"

#include "base/fd.h"
#include "core/link.h"
#include "core/sandbox_state.h"
#include "model/address.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* On a loopback, more means that the app takes no connections at present; a thread is held meanwhile. */
#define CONNECT_MS 100
#define LOOK_MS	   500
#define WAITS_MAX  4 /* threads that wait for one sandbox at a time: all sandboxes share them */

/* Until a connection is made or refused; false if it takes too long, or too many wait already. */
static bool await(struct sandbox *sandbox, int sock)
{
	struct pollfd ready = {.fd = sock, .events = POLLOUT};
	bool is_ready =
		atomic_fetch_add(&sandbox->waits, 1) < WAITS_MAX && poll(&ready, 1, CONNECT_MS) > 0;

	atomic_fetch_sub(&sandbox->waits, 1);
	return is_ready;
}

/* In the form that the socket takes: one of IPv6 is for both versions. */
static socklen_t write_goal(
	int sock, struct address address, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	if (fd_family(sock) == AF_INET)
		return address_to_socket(address, port, out);
	*v6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_addr = address.bytes, .sin6_port = htons(port)};
	return sizeof(*v6);
}

/* 0 or -errno. */
static int connect_to(struct sandbox *sandbox, int sock, struct address address, uint16_t port)
{
	struct sockaddr_storage to;
	int failed = 0;
	socklen_t len = write_goal(sock, address, port, &to);

	if (connect(sock, (struct sockaddr *)&to, len) == 0)
		return 0;
	/* Where there is no IPv6, nobody listens there. */
	if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)
		return -ECONNREFUSED;
	if (errno != EINPROGRESS)
		return -errno;
	if (!await(sandbox, sock))
		return -ETIMEDOUT;
	len = sizeof(failed);
	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &failed, &len) < 0)
		return -errno;
	return -failed;
}

/* A socket that was refused by one family connects to none of the other: each try has its own. */
static int dial(struct sandbox *sandbox, struct address address, uint16_t port, int *ret_fd,
	struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	auto_fd int sock = -1;
	int r = driver->ops->open_socket(driver, sandbox->id, &sock, err);

	if (r < 0)
		return r;
	r = connect_to(sandbox, sock, address, port);
	if (r == -ETIMEDOUT)
		return err_explain(err, ERR_UNAVAILABLE, "port_busy", NULL,
			"what listens on port %u of sandbox %s takes no connections at present",
			port, sandbox->id);
	if (r < 0)
		return err_explain(err, ERR_UNAVAILABLE, "port_closed",
			"start the app, and have it listen on this port",
			"nothing answers on port %u of sandbox %s: %s", port, sandbox->id,
			strerror(-r));
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	*ret_fd = take_fd(&sock);
	return 0;
}

int preview_connect(struct sandbox *sandbox, uint16_t port, int *ret_fd, struct err *err)
{
	const struct address v4 = address_from_v4((struct in_addr){htonl(INADDR_LOOPBACK)});
	int r = dial(sandbox, v4, port, ret_fd, err);

	/* Development servers often listen on what `localhost` means first, which is this. */
	if (r < 0 && strcmp(err->code, "port_closed") == 0)
		r = dial(sandbox, (struct address){in6addr_loopback}, port, ret_fd, err);
	return r;
}

int preview_wake(struct sandbox *sandbox, struct err *err)
{
	struct link *link;
	bool is_paused;
	int r = 0;

	pthread_mutex_lock(&sandbox->state);
	is_paused = sandbox->record.status == SANDBOX_PAUSED;
	pthread_mutex_unlock(&sandbox->state);
	if (is_paused)
		r = sandbox_resume(sandbox, err);
	if (r == 0)
		r = sandbox_use(sandbox, &link, err);
	if (r == 0)
		link_unref(link);
	return r;
}

int preview_look_around(struct sandbox *sandbox, struct port_list *ret_list)
{
	struct err ignored;
	int r = -EBUSY;

	if (atomic_fetch_add(&sandbox->waits, 1) < WAITS_MAX)
		r = port_list_read(sandbox, LOOK_MS, ret_list, &ignored);
	atomic_fetch_sub(&sandbox->waits, 1);
	return r;
}
