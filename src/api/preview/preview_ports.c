/* SPDX-License-Identifier: Apache-2.0 */
/* One port of a sandbox gets a preview: who may see it, and what its app sees of the path in front. */
#include "api/handlers.h"

#include "core/sandbox/sandbox_request.h"

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

HANDLER(preview_ports_patch)
{
	struct sandbox_port_change change = {0};
	struct port_body body = {0};
	struct sandbox_port port;
	struct sandbox *sandbox;
	int r;

	fields_clear(&preview_ports_fields, &body);
	if ((r = fields_decode(&preview_ports_fields, request_body(req), &body, err)) < 0 ||
		(r = api_port(req, &change.number, err)) < 0 ||
		(r = api_sandbox(req, context, &sandbox, err)) < 0)
		return r;
	change.is_public = fields_choice(body.is_public);
	if (body.prefix)
		change.keeps_prefix = strcmp(body.prefix, "keep") == 0 ? CHOICE_YES : CHOICE_NO;
	r = sandbox_request_change_port(sandbox, &change, &port, err);
	if (r < 0)
		return r;
	request_answer_json(req, 200,
		json_pack("{s:i, s:b, s:s}", "port", (int)port.number, "public", port.is_public,
			"prefix", port.keeps_prefix ? "keep" : "strip"));
	return 0;
}
