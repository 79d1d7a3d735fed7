/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper has: shared by the files that its one thread runs through. */
#pragma once

#include "keeper/birth.h"
#include "keeper/cpus.h"
#include "keeper/roster.h"

#include <stdbool.h>
#include <sys/types.h>

#define OFFICE_LISTEN_FD 3 /* sandlotd handed it over */

struct keeper {
	struct build_context context;
	struct cpus cpus;
	struct roster roster;
	struct births births;
	int epoll_fd;
	int signal_fd;
	int lock_fd;
	int kernel_log_fd;
	struct crew crew;
	struct crew_member janitor;
	uid_t daemon_uid;
	size_t pausing;	 /* how many freeze or thaw */
	bool unclean;	 /* some cgroup could not be removed yet */
	bool stopping;	 /* no more sandboxes; exit when the roster is empty */
	int stop_waiter; /* connection that asked for it, or -1 */
};
