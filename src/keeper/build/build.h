/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the first process of a sandbox: everything between clone3 and the agent's first
 * instruction.
 */
#pragma once

#include "base/err.h"
#include "keeper/build/isolation_check.h"
#include "keeper/cgroup/cgroup.h"
#include "keeper/cgroup/cpus.h"
#include "keeper/disk/disk.h"
#include "keeper/disk/storage.h"
#include "keeper/namespace/userns.h"
#include "keeper/net/netns_pool.h"
#include "keeper/process/clone_child.h"
#include "keeper/rootfs/rootfs.h"
#include "wire/keeper.h"

#include <sys/types.h>

/* What every build uses; set once when the keeper starts. */
struct build_context {
	struct cgroup_tree cgroups;
	struct storage storage;
	struct disks disks;
	struct rootfs_sources sources;
	struct userns_cache userns;
	struct isolation_check isolation;
	int own_netns_fd;
	int own_uts_fd;
	char hostname[KEEPER_HOSTNAME_MAX]; /* the keeper's own, which the next clone inherits */
	struct netns_pool networks;
	char *command_line; /* the keeper's own, which names the data directory */
	size_t command_line_len;
	struct clone_child child;
	/* the agent as a sealed memfd: the host has no file of it that a user could write */
	int agent_fd;
};

int build_open_agent(const char *path, int *ret_fd, struct err *err) must_check;

/* What the caller owns of a build that was started. */
struct build {
	pid_t pid;
	int lifeline;
	/* Has no namespace if none could be made: then the child fails. */
	struct network network;
};

/*
 * Clones the first process. It builds its root in parallel with us; if that fails it sends a struct
 * err on the lifeline and exits. The caller reaps it. With is_ahead no request waits for it, and it
 * takes the time to fill caches. A member joins netns_fd, the network of its sandbox; for all others
 * that is -1.
 */
int build_start(struct build_context *context, const struct keeper_request *request,
	const struct cpus_share *cpus, bool is_ahead, int netns_fd, struct build *ret_build,
	struct err *err) must_check;

/*
 * Moves the keeper into a UTS namespace of its own, to which it can return also when it runs in a user
 * namespace.
 */
int build_open_own_uts(int *ret_fd, struct err *err) must_check;

/*
 * Gives a sandbox another name than it was cloned with. The keeper does it and not the child, so that a sandbox that is
 * built ahead serves a request with any name.
 */
int build_set_hostname(const struct build_context *context, pid_t pid, const char *hostname,
	struct err *err) must_check;
