/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/net/netns_pool.h"

#include "base/fd.h"
#include "base/log.h"
#include "wire/fdpass.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUIET_MS 20 /* before each that is not needed yet */

static int make(int own_netns_fd, struct network *network, struct err *err)
{
	int r = netns_make(own_netns_fd, &network->netns_fd, err);

	return r < 0 ? r : netns_open_egress(own_netns_fd, network, err);
}

/* One message for each network: whether it is transparent, and beside that its descriptors. */
static int pass(int give_fd, const struct network *network, struct err *err)
{
	char is_transparent = network->is_transparent;
	int fds[1 + KEEPER_EGRESS_SOCKET_COUNT] = {network->netns_fd};
	ssize_t n;

	for (int i = 0; i < KEEPER_EGRESS_SOCKET_COUNT; i++)
		fds[1 + i] = network->sockets[i];
	n = fdpass_send(give_fd, &is_transparent, 1, fds, array_len(fds), 0);
	return n < 0 ? err_from(err, (int)n, "pass a network on") : 0;
}

static int count_ready(const struct netns_pool *pool)
{
	int bytes = KEEPER_SPARES_MAX;

	(void)!ioctl(pool->take_fd, FIONREAD, &bytes);
	return bytes;
}

/*
 * Waits until a network is needed: at once while fewer than half are ready, else after a while in which nobody took one.
 * Whoever takes one goes first: the first command of a new sandbox would share the processors with us.
 */
static bool await_need(const struct netns_pool *pool, int wake_fd)
{
	struct pollfd poked = {.fd = wake_fd, .events = POLLIN};
	char bytes[64];
	int ready;

	while ((ready = count_ready(pool)) >= (int)(*pool->wanted + 1) / 2) {
		int n = poll(&poked, 1, ready < (int)*pool->wanted ? QUIET_MS : -1);

		if (n == 0)
			return true;
		if (n > 0 && read(wake_fd, bytes, sizeof(bytes)) <= 0)
			return false;
	}
	return true;
}

static int add(const struct netns_pool *pool, struct err *err)
{
	struct network network = NETWORK_NONE;
	int r = make(pool->own_netns_fd, &network, err);

	if (r == 0)
		r = pass(pool->give_fd, &network, err);
	network_release(&network);
	return r;
}

static void run_helper(const void *arg, int wake_fd)
{
	const struct netns_pool *pool = arg;
	char bytes[64];
	struct err err;

	while (await_need(pool, wake_fd)) {
		if (add(pool, &err) == 0)
			continue;
		log_warning("no network is made ahead: %s", err.message);
		if (read(wake_fd, bytes, sizeof(bytes)) <= 0)
			return;
	}
}

int netns_pool_start(
	struct netns_pool *pool, int own_netns_fd, struct helpers *helpers, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket for networks");
	*pool = (struct netns_pool){.own_netns_fd = own_netns_fd,
		.take_fd = pair[0],
		.give_fd = pair[1],
		.wanted = helpers_new_shared(sizeof(*pool->wanted)),
		.helper = {.name = "netns pool helper",
			.work = run_helper,
			.arg = pool,
			.own_fds = {own_netns_fd, pair[0], pair[1]}}};
	helpers_add(helpers, &pool->helper);
	return 0;
}

void netns_pool_keep(struct netns_pool *pool, unsigned count)
{
	*pool->wanted = count;
}

bool netns_pool_take(const struct netns_pool *pool, struct network *ret_network)
{
	int fds[FDPASS_MAX];
	char is_transparent;
	ssize_t n = fdpass_recv(pool->take_fd, &is_transparent, 1, fds, MSG_DONTWAIT);

	helpers_wake(&pool->helper);
	if (n != 1)
		return false;
	ret_network->netns_fd = fds[0];
	for (int i = 0; i < KEEPER_EGRESS_SOCKET_COUNT; i++)
		ret_network->sockets[i] = fds[1 + i];
	ret_network->is_transparent = is_transparent;
	return true;
}
