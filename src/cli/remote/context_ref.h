/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of a sandbox, by the beginning of their ids. */
#pragma once

#include "cli/remote/client.h"
#include "cli/remote/resolve.h"

/* The answer of the daemon, with `contexts`. */
int context_ref_list(struct client *client, const char *sandbox_id, json_t **ret_answer,
	struct err *err) must_check;

int context_ref_find(struct client *client, const char *sandbox_id, const char *text,
	char id[RESOLVE_ID_LEN + 1], struct err *err) must_check;
