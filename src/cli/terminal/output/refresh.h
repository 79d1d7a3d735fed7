/* SPDX-License-Identifier: Apache-2.0 */
/* Shows something again and again, in place on a terminal, until a signal comes. */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

#define REFRESH_MS 2000

/* Prints one state to standard output. */
typedef int (*refresh_fn)(void *arg, struct err *err);

/* Never 0: -EINTR after a signal, or what `show` failed with. */
int refresh_run(struct client *client, refresh_fn show, void *arg, struct err *err) must_check;
