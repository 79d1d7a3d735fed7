/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon of this machine, which is meant where no address is given: it is reached by the socket run/api.sock in its
 * data directory. A port can be taken by anybody once its daemon is dead; a socket in that directory can be made by
 * nobody but the daemon's owner, so that whoever answers there may have the token. That is checked before anything is
 * sent.
 */
#pragma once

#include "base/err.h"

/* Its data directory: the one that SANDLOT_DATA_DIR names, or else the user's own, or root's. A new string. */
char *local_daemon_data_dir(void);

/* The socket in it, a new string. */
char *local_daemon_socket(const char *data_dir);

/* That there is a socket, and that only the owner of the data directory or root can have put it there. */
int local_daemon_check(const char *data_dir, struct err *err) must_check;

/* How a daemon is started whose data directory is the usual one, or not known. */
#define LOCAL_DAEMON_START                                                                         \
	"start it with \"make run\" or \"systemctl start sandlot\"; one elsewhere is named by "    \
	"--url "                                                                                   \
	"or SANDLOT_URL"

/* Says that nobody listens there. */
int local_daemon_explain(const char *data_dir, struct err *err);
