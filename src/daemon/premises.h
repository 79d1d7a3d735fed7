/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon does while it is still root: directories, the lock, the first token, the keeper. And
 * the step that ends it, after which it is an ordinary user for good. Started by an ordinary user it
 * does the same with what that user has (rootless.h).
 */
#pragma once

#include "auth/secret.h"
#include "base/err.h"
#include "daemon/settings.h"

#include <sys/types.h>

#define PREMISES_TOKEN_MAX SECRET_TEXT_MAX

struct premises {
	bool is_rootless; /* started by an ordinary user, who then owns everything */
	uid_t owner;	  /* of directories and token: root, or that user */
	uid_t uid;	  /* what the daemon becomes, or is */
	gid_t gid;
	int lock_fd;		 /* held as long as the process lives */
	int address_fd;		 /* run/api.addr, for writing where we listen */
	bool has_started_keeper; /* none ran before */
	char keeper_socket[108];
	char token[PREMISES_TOKEN_MAX]; /* the first administrator's token, as in the file */
};

/* Directories, lock and token. */
int premises_open(const struct settings *settings, struct premises *ret_premises, struct err *err)
	must_check;

/* Makes sure that a keeper runs for this data directory. */
int premises_start_keeper(
	const struct settings *settings, struct premises *premises, struct err *err) must_check;

/* Becomes the unprivileged user, if it is not, for good. */
int premises_drop_privileges(const struct premises *premises, struct err *err) must_check;

/* Writes the address for whoever looks for us; "" takes it back, before a stranger has the port. */
void premises_write_address(const struct premises *premises, const char *address);
