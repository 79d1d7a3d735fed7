/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which walls this host can give a sandbox. Found out once, when the keeper starts: what is missing
 * either was allowed to be, by name, or every build is refused. So a sandbox never has fewer walls than
 * the operator knows of.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup.h"
#include "wire/keeper.h"

struct fence {
	struct walls walls;
	struct err refusal; /* why nothing is built; kind ERR_NONE if all is well */
};

/* Looks at the host. allowed: bits of walls that may be missing. */
void fence_survey(struct fence *ret_fence, const struct cgroup_tree *cgroups, bool is_host,
	size_t mask_count, uint32_t allowed);

/* The walls of a sandbox with that profile. */
void fence_describe(
	const struct fence *fence, enum keeper_profile profile, struct walls *ret_walls);
