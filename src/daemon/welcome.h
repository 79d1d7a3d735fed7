/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody at this machine needs to know of a daemon that serves: where it is, and what to try first. */
#pragma once

#include "http/listener.h"

#define WELCOME_ADDRESS_MAX 160

/* Where clients on this machine reach a listener: host and port. */
void welcome_address(const struct listener *listener, char address[WELCOME_ADDRESS_MAX]);

/* Prints the welcome on stdout. */
void welcome_print(const char *data_dir, const struct listener *listener);
