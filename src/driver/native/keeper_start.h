/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the keeper for the native driver, while the daemon has the privileges of its start: as root,
 * or with what an ordinary user has (rootless.h). The keeper outlives the daemon; the next one finds
 * it at its socket. The functions are those of a row of driver_table.h.
 */
#pragma once

#include "driver/driver_kind.h"

#define KEEPER_START_SOCKET_MAX 108 /* of sockaddr_un, with NUL */

/* ERR_UNAVAILABLE: an ordinary user has no ids to lend to sandboxes. */
int keeper_start_check_user(struct err *err) must_check;

/* Makes sure that a keeper runs for this data directory. */
int keeper_start(const struct driver_config *config, bool *ret_has_started, struct err *err)
	must_check;

/* Whether none runs. */
bool keeper_start_is_gone(const struct driver_config *config);

/* Where the keeper listens. */
int keeper_start_socket(const struct driver_config *config, char path[KEEPER_START_SOCKET_MAX],
	struct err *err) must_check;
