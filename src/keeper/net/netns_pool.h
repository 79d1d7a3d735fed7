/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces that are made ahead, each with its egress sockets (netns.h).
 *
 * Making one takes the kernel longer than any other part of a sandbox. A long-lived helper makes
 * them and passes each over a socket, in which a few wait to be taken.
 */
#pragma once

#include "base/err.h"
#include "keeper/net/netns.h"
#include "keeper/process/helpers.h"

struct netns_pool {
	int own_netns_fd;
	int take_fd, give_fd; /* the two ends of the socket */
	unsigned *wanted;     /* how many are kept ready; shared with the helper */
	struct helper helper;
};

int netns_pool_start(struct netns_pool *pool, int own_netns_fd, struct helpers *helpers,
	struct err *err) must_check;

/* Sets how many are kept ready. They are made when the first build has wanted one. */
void netns_pool_keep(struct netns_pool *pool, unsigned count);

/* Takes a network; false if none is ready. */
bool netns_pool_take(const struct netns_pool *pool, struct network *ret_network);
