/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon prints when it serves: where it is, and what to try first. */
#pragma once

#include "http/listener.h"

#define BANNER_ADDRESS_MAX 160

/* Where clients on this machine reach a listener: host and port. */
void banner_address(const struct listener *listener, char address[BANNER_ADDRESS_MAX]);

/* Prints the welcome on stdout, with a link for browsers if there is a code (api/operator/logins.h); with a failure, why there are no sandboxes yet in the place of what to try. */
void banner_print(const char *data_dir, const struct listener *listener, const char *code,
	const struct err *failure);
