/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the first process of a sandbox: everything between clone3 and the agent's first step. */
#pragma once

#include "base/err.h"
#include "keeper/cgroup.h"
#include "keeper/cpus.h"
#include "keeper/disk.h"
#include "keeper/fence.h"
#include "keeper/netstock.h"
#include "keeper/offspring.h"
#include "keeper/rootfs.h"
#include "keeper/storage.h"
#include "keeper/userns.h"
#include "wire/keeper.h"

#include <sys/types.h>

/* What every build uses; made once. */
struct build_context {
	struct cgroup_tree cgroups;
	struct storage storage;
	struct disks disks;
	struct rootfs_sources sources;
	struct userns_cache userns;
	struct fence fence;
	int own_netns_fd;
	struct netstock networks;
	char *command_line; /* the keeper's own, which names the data directory */
	size_t command_line_len;
	struct offspring offspring;
	int agent_fd; /* the agent as a sealed memfd: no file on the host that anybody could write */
};

int build_open_agent(const char *path, int *ret_fd, struct err *err) must_check;

/* What the caller owns of one that was started. */
struct build {
	pid_t pid;
	int lifeline;
	/* Without a namespace if it could not be made: then the child fails. */
	struct network network;
};

/*
 * Clones the first process. It builds its own surroundings in parallel with us; if that fails it
 * sends a struct err on the lifeline and exits. The caller reaps it. If nobody waits for it yet, it has
 * time to be more thorough.
 */
int build_start(struct build_context *context, const struct keeper_request *request,
	const struct cpus_share *cpus, bool has_time, struct build *ret_build, struct err *err)
	must_check;
