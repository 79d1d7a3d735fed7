/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends a keeper that runs but answers nobody, so that another can take its place. Root alone can, so it happens when
 * sandlotd starts. The sandboxes of such a keeper could be neither stopped nor started any more; they end with it, and
 * keep their files.
 */
#pragma once

#include "base/err.h"

/*
 * Kills the process that holds run/keeper.lock of the data directory and is a sandlot-keeper of it, and waits for its
 * end. An error if there is none, or if it does not end.
 */
int hung_keeper_end(const char *data_dir, struct err *err) must_check;
