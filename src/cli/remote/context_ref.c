/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/context_ref.h"

#include <stdio.h>

int context_ref_list(
	struct client *client, const char *sandbox_id, json_t **ret_answer, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/contexts", sandbox_id);

	return client_json(
		client, &(struct client_call){.method = "GET", .path = path}, ret_answer, err);
}

int context_ref_find(struct client *client, const char *sandbox_id, const char *text,
	char id[RESOLVE_ID_LEN + 1], struct err *err)
{
	json_auto_t *answer = NULL;
	int r;

	if (resolve_is_whole(text)) {
		snprintf(id, RESOLVE_ID_LEN + 1, "%s", text);
		return 0;
	}
	r = context_ref_list(client, sandbox_id, &answer, err);
	return r < 0 ? r : resolve_among(json_object_get(answer, "contexts"), text, id, err);
}
