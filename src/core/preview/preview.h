/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching a port of a sandbox from outside of it. */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/preview/port_list.h"

/*
 * Connects to a port on the loopback of a sandbox that runs. The descriptor is non-blocking.
 * ERR_UNAVAILABLE with the code port_closed if nothing listens there.
 */
int preview_connect(struct sandbox *sandbox, uint16_t port, int *ret_fd, struct err *err)
	must_check;

/* Starts one that is stopped, or lets a paused one go on; returns when its agent is there. */
int preview_wake(struct sandbox *sandbox, struct err *err) must_check;

/*
 * What listens in a sandbox that runs, to tell whoever looks for it on another port. Few may wait for that at a time,
 * and not long; -errno.
 */
int preview_look_around(struct sandbox *sandbox, struct port_list *ret_list) must_check;
