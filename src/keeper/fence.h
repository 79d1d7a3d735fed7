/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which walls this host can give a sandbox. Found out once, when the keeper starts: what is missing
 * either was allowed to be, by name, or every build is refused. So a sandbox never has fewer walls than
 * the operator knows of.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup.h"
#include "keeper/disk.h"
#include "wire/keeper.h"

struct fence {
	struct walls walls;
	struct err refusal;	 /* why nothing is built; kind ERR_NONE if all is well */
	struct err disk_refusal; /* why nothing is built that is to have a limited disk */
};

/* What is known of the host. */
struct fence_ground {
	const struct cgroup_tree *cgroups;
	bool is_host; /* the keeper is its root */
	size_t mask_count;
	enum disk_way disk_way;
};

/* allowed: bits of walls that may be missing. */
void fence_survey(struct fence *ret_fence, const struct fence_ground *ground, uint32_t allowed);

/* Whether a sandbox may be built as asked for. */
int fence_check(const struct fence *fence, const struct keeper_request *request, struct err *err)
	must_check;

/* The walls of a sandbox that is built as asked for, with such a disk. */
void fence_describe(const struct fence *fence, const struct keeper_request *request,
	enum disk_way disk_way, struct walls *ret_walls);
