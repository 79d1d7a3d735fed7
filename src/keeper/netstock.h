/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces that are made ahead, each with its way out (netns.h).
 *
 * Making one takes the kernel longer than anything else in a sandbox. A member of the crew does it, and
 * passes what it made over a socket, in which a few of them wait to be taken.
 */
#pragma once

#include "base/err.h"
#include "keeper/crew.h"
#include "keeper/netns.h"

struct netstock {
	int own_netns_fd;
	int take_fd, give_fd; /* the two ends of the socket */
	struct crew_member wirer;
};

int netstock_start(struct netstock *stock, int own_netns_fd, struct crew *crew, struct err *err)
	must_check;

/* Says that they will be wanted. */
void netstock_order(const struct netstock *stock);

/* Takes one; false if none is ready. */
bool netstock_take(const struct netstock *stock, struct network *ret_network);
