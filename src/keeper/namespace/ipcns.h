/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a sandbox's System V objects. They outlive the processes that made them: if they alone
 * filled the memory, the kernel could kill only the agent.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

/* In the child, inside its namespace and its root. */
int ipcns_limit(const struct keeper_limits *limits, struct err *err) must_check;
