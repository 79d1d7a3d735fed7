/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps of a sandbox's first process, in the only order that works: limits while still
 * privileged, then the user namespace, then capabilities, then no_new_privs and the filter.
 */
#pragma once

#include "base/err.h"

/*
 * In the child: becomes root of the user namespace, with the few capabilities that root of a sandbox
 * has, under the seccomp filter. The mount, network, pid, ipc and uts namespaces belong to the host's
 * user namespace and so give no power inside.
 */
int confine(int userns_fd, struct err *err) must_check;
