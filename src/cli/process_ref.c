/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process_ref.h"

#include "cli/cli.h"
#include "cli/remote/peer.h"

#include <stdio.h>
#include <string.h>

#define KILL_TIMEOUT_MS 10000

bool process_ref_is_name(const char *text)
{
	size_t len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz");

	return len > 0 && len <= PROCESS_REF_MAX && !text[len];
}

int process_ref_in(
	struct client *client, const char *sandbox, struct process_ref *ret, struct err *err)
{
	ret->given = sandbox;
	return resolve_id(client, sandbox, ret->sandbox, err);
}

int process_ref_find(struct client *client, const char *sandbox, const char *process,
	struct process_ref *ret, struct err *err)
{
	if (!process_ref_is_name(process))
		return err_explain(err, ERR_INVALID, NULL,
			"\"sandlot ps SANDBOX\" shows those there are",
			"\"%s\" is neither a process such as p7 nor the number of one", process);
	snprintf(ret->process, sizeof(ret->process), "%s", process);
	return process_ref_in(client, sandbox, ret, err);
}

char *process_ref_path(const struct process_ref *ref, const char *rest)
{
	return mem_printf("/v1/sandboxes/%s/processes/%s%s", ref->sandbox, ref->process, rest);
}

int process_ref_ask(struct client *client, const struct process_ref *ref, const char *method,
	const char *rest, const json_t *body, json_t **ret, struct err *err)
{
	auto_free char *path = process_ref_path(ref, rest);
	json_auto_t *document = NULL;
	json_t *process;
	int r = client_json(client,
		&(struct client_call){.method = method, .path = path, .body = body}, &document,
		err);

	if (r < 0 || !ret)
		return r;
	process = json_object_get(document, "process");
	if (!json_is_object(process))
		return err_set(
			err, ERR_INTERNAL, "%s answered with no process", client_url(client));
	*ret = json_incref(process);
	return 0;
}

int process_ref_name(const json_t *process, struct process_ref *ret, struct err *err)
{
	const char *name = json_string_value(json_object_get(process, "id"));

	if (!name || !process_ref_is_name(name))
		return err_set(err, ERR_INTERNAL, "the daemon did not name the process");
	snprintf(ret->process, sizeof(ret->process), "%s", name);
	return 0;
}

void process_ref_kill(struct client *client, const struct process_ref *ref)
{
	auto_free char *path = process_ref_path(ref, "?kill_tree=true");
	struct client_call call = {.method = "DELETE", .path = path, .timeout_ms = KILL_TIMEOUT_MS};
	struct err ignored;

	if (client_json(client, &call, NULL, &ignored) < 0)
		return;
}

void process_ref_tell(
	const struct client *client, const struct process_ref *ref, const char *command)
{
	const char *member = client_peer(client)->member;

	cli_note("%s goes on; go back to it with: sandlot %s%s%s %s %s", ref->process, command,
		member ? " --member " : "", member ? member : "",
		ref->given ? ref->given : ref->sandbox, ref->process);
}
