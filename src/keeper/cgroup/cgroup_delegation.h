/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the host's cgroup trees that was given to an ordinary user: the groups that this keeper
 * was started in, if they belong to that user. A service manager does that (`Delegate=yes` of systemd).
 */
#pragma once

#include "base/mem.h"

#include <limits.h>
#include <stdbool.h>

/*
 * Opens our own group in the hierarchy whose root is open: of a v1 controller, or v2 for NULL. -1 if it is
 * not ours to use.
 */
int cgroup_delegation_open(int root_fd, const char *controller) must_check;

/*
 * On v2 a group whose children have limits may have no processes itself. Moves those of this one,
 * the daemon and the programs that started it, one level down, into a group beside those of the
 * sandboxes.
 */
int cgroup_delegation_step_down(int fd) must_check;

/* The path of that group in the text of /proc/self/cgroup; false if it does not say. */
bool cgroup_delegation_find(const char *text, const char *controller, char ret_path[PATH_MAX]);
