/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/netstock.h"

#include "base/fd.h"
#include "base/log.h"
#include "wire/fdpass.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define READY_MAX 4

static int make(int own_netns_fd, struct network *network, struct err *err)
{
	int r = netns_make(own_netns_fd, &network->netns_fd, err);

	return r < 0 ? r : netns_open_exits(own_netns_fd, network, err);
}

/* One message for each: whether it is transparent, and beside that its descriptors. */
static int pass(int give_fd, const struct network *network, struct err *err)
{
	char is_transparent = network->is_transparent;
	int fds[1 + KEEPER_EXIT_COUNT] = {network->netns_fd};
	ssize_t n;

	for (int i = 0; i < KEEPER_EXIT_COUNT; i++)
		fds[1 + i] = network->exits[i];
	n = fdpass_send(give_fd, &is_transparent, 1, fds, array_len(fds), 0);
	return n < 0 ? err_from(err, (int)n, "pass a network on") : 0;
}

static int count_ready(const struct netstock *stock)
{
	int bytes = READY_MAX;

	(void)!ioctl(stock->take_fd, FIONREAD, &bytes);
	return bytes;
}

static void run_wirer(const void *arg, int pokes)
{
	const struct netstock *stock = arg;
	char bytes[64];
	struct err err;

	while (read(pokes, bytes, sizeof(bytes)) > 0) {
		while (count_ready(stock) < READY_MAX) {
			struct network network = NETWORK_NONE;
			int r = make(stock->own_netns_fd, &network, &err);

			if (r == 0)
				r = pass(stock->give_fd, &network, &err);
			network_release(&network);
			if (r < 0) {
				log_warning("no network is made ahead: %s", err.message);
				break;
			}
		}
	}
}

int netstock_start(struct netstock *stock, int own_netns_fd, struct crew *crew, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket for networks");
	*stock = (struct netstock){.own_netns_fd = own_netns_fd,
		.take_fd = pair[0],
		.give_fd = pair[1],
		.wirer = {.name = "wirer",
			.work = run_wirer,
			.arg = stock,
			.tools = {own_netns_fd, pair[0], pair[1]}}};
	crew_join(crew, &stock->wirer);
	return 0;
}

void netstock_order(const struct netstock *stock)
{
	crew_poke(&stock->wirer);
}

bool netstock_take(const struct netstock *stock, struct network *ret_network)
{
	int fds[FDPASS_MAX];
	char is_transparent;
	ssize_t n = fdpass_recv(stock->take_fd, &is_transparent, 1, fds, MSG_DONTWAIT);

	netstock_order(stock);
	if (n != 1)
		return false;
	ret_network->netns_fd = fds[0];
	for (int i = 0; i < KEEPER_EXIT_COUNT; i++)
		ret_network->exits[i] = fds[1 + i];
	ret_network->is_transparent = is_transparent;
	return true;
}
