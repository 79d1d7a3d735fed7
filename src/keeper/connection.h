/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the daemon, on which requests come and their answers go. */
#pragma once

#include "keeper/keeper.h"
#include "wire/keeper.h"

/* Closes it, and nobody answers on it any more. */
void connection_close(struct keeper *keeper, int conn);

/*
 * Runs work that may take long, because trees are large or a disk has to be mounted, in a child.
 * The child owns the connection from then on and answers. Returns its pid, or -errno.
 */
pid_t connection_delegate(struct keeper *keeper, const struct keeper_request *request, int conn,
	int (*work)(struct keeper *keeper, const struct keeper_request *request,
		struct keeper_answer *reply, struct err *err));
