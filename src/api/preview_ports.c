/* SPDX-License-Identifier: Apache-2.0 */
/* One port of a sandbox gets a preview: who may see it, and what its app sees of the path in front. */
#include "api/handlers.h"

#include "core/sandbox.h"
#include "model/sandbox_port.h"

struct port_body {
	enum field_boolean is_public;
	const char *prefix;
};

static const char *const prefixes[] = {"strip", "keep", NULL};

static const struct field port_rows[] = {
	{"public", FIELD_BOOLEAN, offsetof(struct port_body, is_public), 0, 0, 0,
		"Whether anybody may see it, and wake the sandbox by that."},
	{"prefix", FIELD_STRING, offsetof(struct port_body, prefix), 1, 8, 0,
		"Whether the app sees the path in front of a request by path.",
		.choices = prefixes},
};

const struct fields preview_ports_fields = FIELDS(port_rows);

struct port_change {
	const json_t *change;
	struct sandbox_port port; /* as it is then */
	bool is_done;
};

static void apply(struct sandbox_record *record, void *arg)
{
	struct port_change *change = arg;

	change->is_done = sandbox_port_change(record->ports, change->port.number, change->change) &&
			  sandbox_port_find(record, change->port.number, &change->port);
}

HANDLER(preview_ports_patch)
{
	struct api *api = context;
	struct port_change change = {.change = request_body(req)};
	struct sandbox *sandbox;
	struct port_body body;
	int r;

	fields_clear(&preview_ports_fields, &body);
	if ((r = fields_decode(&preview_ports_fields, change.change, &body, err)) < 0 ||
		(r = api_port(req, &change.port.number, err)) < 0 ||
		(r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = sandbox_change(sandbox, apply, &change, err)) < 0)
		return r;
	if (!change.is_done)
		return err_explain(err, ERR_CONFLICT, "too_many_ports",
			"take away some that are not needed: PATCH /v1/sandboxes/{id} with `ports`",
			"sandbox %s has %d ports with previews, and may not have more",
			sandbox_id(sandbox), SANDBOX_PORTS_MAX);
	atomic_fetch_add(&api->preview_generation, 1);
	request_answer_json(req, 200,
		json_pack("{s:i, s:b, s:s}", "port", (int)change.port.number, "public",
			change.port.is_public, "prefix",
			change.port.keeps_prefix ? "keep" : "strip"));
	return 0;
}
