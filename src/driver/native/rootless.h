/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ordinary user's daemon does in place of being root: it gives its keeper a user namespace, in
 * which the user is root and the ids that /etc/subuid and /etc/subgid lend to the user are the others.
 *
 * Only a privileged program may map ids that are not one's own: newuidmap and newgidmap, of the package
 * uidmap. They want to be started from outside the namespace. So the keeper-to-be makes the namespace
 * and waits at a gate, a socket, until the daemon has had the ids mapped; the keeper itself starts
 * nobody.
 */
#pragma once

#include "base/err.h"

/* Whether there are ids to map. If not, err names the command that mends it. */
int rootless_check(struct err *err) must_check;

/* In the process that will be the keeper: makes the namespace and returns as its root. 0 or -errno. */
int rootless_enter(int gate) must_check;

/* In the daemon, at the other end of the gate: lets that process in. */
int rootless_admit(int gate, struct err *err) must_check;
