/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the keeper, which its one thread shares among the files that it runs through. */
#pragma once

#include "keeper/build/prebuild.h"
#include "keeper/cgroup/cgroup_removals.h"
#include "keeper/cgroup/cpus.h"
#include "keeper/disk/snapshot_store.h"
#include "keeper/disk/trash.h"
#include "keeper/rootfs/layer_store.h"
#include "keeper/sandbox/sandbox_table.h"

#include <stdbool.h>
#include <sys/types.h>

#define KEEPER_LISTEN_FD 3 /* sandlotd opened this socket */

struct keeper {
	struct build_context context;
	struct cpus cpus;
	struct sandbox_table table;
	struct cgroup_removals removals;
	struct prebuilds prebuilds;
	struct layer_store layers;
	struct snapshot_store snapshots;
	int epoll_fd;
	int signal_fd;
	int lock_fd;
	int kernel_log_fd;
	struct helpers helpers;
	struct trash_remover trash_remover;
	uid_t daemon_uid;
	size_t freeze_count; /* how many sandboxes are being frozen or thawed */
	bool unclean;	     /* a process of some sandbox that ended is still dying */
	bool stopping;	     /* no more sandboxes; exit when the sandbox table is empty */
	int stop_waiter;     /* connection that asked for the stop, or -1 */
};
