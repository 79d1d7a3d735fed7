/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/removal.h"

#define TIMEOUT_MS 60000

/* Purging ends a sandbox that runs, so one request does either. */
int removal_run(struct client *client, const char *id, bool purge, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s%s", id, purge ? "/purge" : "");

	return client_json(client,
		&(struct client_call){.method = purge ? "POST" : "DELETE",
			.path = path,
			.timeout_ms = TIMEOUT_MS},
		NULL, err);
}
