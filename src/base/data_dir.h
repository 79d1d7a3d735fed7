/* SPDX-License-Identifier: Apache-2.0 */
/* Where daemons keep their data unless they are told otherwise. */
#pragma once

#include "base/mem.h"

#define DATA_DIR_OF_ROOT "/var/lib/sandlot"

/*
 * The data directory of a daemon that this user starts without root, $XDG_DATA_HOME/sandlot; NULL
 * if the environment does not say.
 */
char *data_dir_of_user(void);
