/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon does while it is still root: directories, the lock, the first token. Its driver is
 * prepared then too (driver_table.h). And the step that ends it, after which it is an ordinary user for
 * good. Started by an ordinary user it does the same with what that user has.
 */
#pragma once

#include "auth/secret.h"
#include "base/err.h"
#include "daemon/settings.h"
#include "doctor/host_report.h"

#include <sys/types.h>

#define PRIVILEGED_SETUP_TOKEN_MAX SECRET_TEXT_MAX

struct privileged_setup {
	bool is_rootless; /* started by an ordinary user, who then owns everything */
	uid_t owner;	  /* of directories and token: root, or that user */
	uid_t uid;	  /* what the daemon becomes, or is */
	gid_t gid;
	int lock_fd;		    /* held as long as the process lives */
	int stamp_fd;		    /* workspaces/.generation: which database they belong to */
	bool has_workspaces;	    /* there are files of sandboxes */
	int address_fd;		    /* run/api.addr, for writing where we listen */
	char api_socket[108];	    /* where the command line of this machine finds us */
	struct host_report *report; /* what was found on the host; freed by whoever has it last */
	char token
		[PRIVILEGED_SETUP_TOKEN_MAX]; /* the first administrator's token, as in the file */
};

/* Directories, lock and token. */
int privileged_setup_open(const struct settings *settings, struct privileged_setup *ret_setup,
	struct err *err) must_check;

/* Becomes the unprivileged user, if it is not, for good. */
int privileged_setup_drop_privileges(const struct privileged_setup *setup, struct err *err)
	must_check;

/*
 * Writes the address for clients of this machine; "" removes it, before another program has the
 * port.
 */
void privileged_setup_write_address(const struct privileged_setup *setup, const char *address);
