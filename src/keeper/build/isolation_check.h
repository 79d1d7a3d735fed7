/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which walls this host can give a sandbox. The keeper finds out once, when it starts: if a wall is
 * missing that the operator did not allow to be, by name, every build is refused. So a sandbox
 * never has fewer walls than the operator knows of.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup/cgroup.h"
#include "keeper/disk/disk.h"
#include "wire/keeper.h"

struct isolation_check {
	struct walls walls;
	struct err refusal;	 /* why no sandbox is built; kind ERR_NONE if all is well */
	struct err disk_refusal; /* why no sandbox with a limited disk is built */
};

/* What the keeper knows of the host. */
struct isolation_check_host {
	const struct cgroup_tree *cgroups;
	bool is_host; /* the keeper is root of the host */
	size_t mask_count;
	enum disk_way disk_way;
};

/* Finds out which walls are missing; `allowed` has the bits of those that may be. */
void isolation_check_survey(struct isolation_check *ret_isolation,
	const struct isolation_check_host *host, uint32_t allowed);

/* Refuses a build whose walls are missing and not allowed to be. */
int isolation_check_check(const struct isolation_check *isolation,
	const struct keeper_request *request, struct err *err) must_check;

/* Says which walls a sandbox built by this request, with such a disk, has. */
void isolation_check_describe(const struct isolation_check *isolation,
	const struct keeper_request *request, enum disk_way disk_way, struct walls *ret_walls);
