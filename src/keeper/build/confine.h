/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps of a sandbox's first process, in the only order that works: limits while still
 * privileged, then the user namespace, then capabilities, then no_new_privs and the filter.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

/*
 * In the child: becomes root of the user namespace, with the few capabilities that root of a
 * sandbox has, under the seccomp filter of the profile. The mount, network, pid, ipc and uts
 * namespaces belong to the host's user namespace and so give no power inside. The function leaves
 * out the walls that are missing; it sets up every other one, or fails.
 *
 * *ret_listener_fd receives the calls that the filter refuses; it is -1 if there is no filter, or
 * if the keeper itself is confined by a program that listens: then the kernel answers such calls
 * with ENOSYS.
 */
int confine(int userns_fd, enum keeper_profile profile, const struct walls *walls,
	int *ret_listener_fd, struct err *err) must_check;

/* How many capabilities root of a sandbox has. */
unsigned confine_count_caps(void);
