/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of driver has to say of itself, and what the daemon tells it: a row of driver_table.c. */
#pragma once

#include "driver/driver.h"

#include <sys/types.h>

/* What the daemon tells a driver. All of it is borrowed. */
struct driver_config {
	const char *data_dir; /* the daemon's; a driver may have files of its own below it */
	uid_t owner; /* of directories that the daemon does not write to: root, or its user */
	uid_t uid;   /* what the daemon is once it serves */
	gid_t gid;
	const char *allow_missing; /* --allow-missing */
	bool limits_disk;	   /* --disk-limits */
	bool is_rootless;	   /* an ordinary user's daemon */
	uint64_t
		patience_ms; /* what the driver needs and is silent for longer counts as gone; 0: never */
};

struct driver_kind {
	const char *name;
	unsigned capabilities; /* DRIVER_BIT: what an open driver of this kind can do */

	/* Whether it can work for the user who starts the daemon; asked before anything is made.
	 * NULL: it can. */
	int (*check_user)(struct err *err);

	/* Does what needs the privileges with which the daemon was started: it gives them up
	 * afterwards. Tells whether it started something, which has no sandboxes yet; a driver's
	 * shutdown ends that. NULL: nothing is needed. */
	int (*prepare)(const struct driver_config *config, bool *ret_has_started, struct err *err);

	/* What people call that which prepare leaves running; may be NULL. */
	const char *helper;

	/* Whether that is gone, so that open fails until the daemon is started anew.
	 * NULL: that does not happen. */
	bool (*is_gone)(const struct driver_config *config);

	/* Ends that, with all sandboxes, where open fails: it may be of another version, which the
	 * operator was told to end. NULL: nothing runs without an open driver. */
	int (*end)(const struct driver_config *config, struct err *err);

	/* DRIVER_CANNOT_START: what prepare started said why it cannot serve. */
	int (*open)(const struct driver_config *config, struct driver **ret_driver, struct err *err)
		must_check;
};

/* The code of an error of open that will be the same after each start of the daemon. */
#define DRIVER_CANNOT_START "driver_cannot_start"

/* That of one where the driver's part that needs privileges serves on, but speaks another version than we. */
#define DRIVER_OTHER_VERSION "keeper_version"
