/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces with nothing in them but a loopback interface that is up.
 *
 * Making one takes the kernel longer than any other part of a sandbox. So most are made ahead (netns_pool.h);
 * else the keeper makes it while the sandbox's first process, on another processor, is building its root,
 * and hands it over.
 */
#pragma once

#include "base/err.h"
#include "base/fd.h"
#include "wire/keeper.h"

#include <stdint.h>

/* What a sandbox has of the network. -1: not there. */
struct network {
	int netns_fd;
	int sockets[KEEPER_EGRESS_SOCKET_COUNT]; /* the egress sockets, if it has them */
	bool is_transparent;			 /* all TCP goes to the first of them by itself */
};

#define NETWORK_NONE ((struct network){.netns_fd = -1, .sockets = {-1, -1, -1}})

static inline void network_release(struct network *network)
{
	fd_close(take_fd(&network->netns_fd));
	for (int i = 0; i < KEEPER_EGRESS_SOCKET_COUNT; i++)
		fd_close(take_fd(&network->sockets[i]));
}

/*
 * Makes the keeper's own namespace, without a network, and enters it, to come back to. (Where the
 * keeper is root of less than the host it could not come back to the host's.)
 */
int netns_open_own(int *ret_fd, struct err *err) must_check;

/*
 * Makes a namespace and returns to own_fd. If it cannot return, the keeper would stay in a sandbox:
 * it aborts.
 */
int netns_make(int own_fd, int *ret_fd, struct err *err) must_check;

/*
 * In the child, inside its namespace and its root: lets all users there, whose gids are the count
 * from base on, use low ports and ping. It uses the sandbox's own procfs: the host's has an entry
 * for each namespace that was ever looked at, and finding the right one takes 0.3 ms when there are
 * a thousand.
 */
int netns_open_ports(uint32_t base_gid, uint32_t count, struct err *err) must_check;

/*
 * Opens the egress sockets of a network (enum keeper_egress_socket), and leads all TCP to the first. Where the
 * kernel has no nf_tables a program can still use the sockets by their addresses: then the network
 * is not transparent. The keeper makes them, so that no process inside can close or replace them.
 */
int netns_open_egress(int own_fd, struct network *network, struct err *err) must_check;

/*
 * A TCP socket in the namespace netns_fd, not connected: for IPv6, and for IPv4 as ::ffff:127.0.0.1. Of IPv4
 * alone where the kernel has no IPv6.
 */
int netns_open_socket(int own_fd, int netns_fd, int *ret_fd, struct err *err) must_check;
