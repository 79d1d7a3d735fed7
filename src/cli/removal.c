/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/removal.h"

#define TIMEOUT_MS 60000

int removal_run(struct client *client, const char *id, bool purge, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", id);
	auto_free char *purge_path = mem_printf("/v1/sandboxes/%s/purge", id);
	int r = client_json(client,
		&(struct client_call){.method = "DELETE", .path = path, .timeout_ms = TIMEOUT_MS},
		NULL, err);

	if (r < 0 || !purge)
		return r;
	return client_json(client,
		&(struct client_call){
			.method = "POST", .path = purge_path, .timeout_ms = TIMEOUT_MS},
		NULL, err);
}
