/* SPDX-License-Identifier: Apache-2.0 */
/* One-time tickets for browsers, which can set no header on a WebSocket or an EventSource. */
#include "api/handlers.h"
#include "api/operator/logins.h"
#include "base/clock.h"

struct ticket_body {
	const char *path;
};

/* As it will be sent: compared byte by byte with what comes. */
static const char *check_path(const json_t *value)
{
	const char *path = json_string_value(value);

	for (const char *c = path; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f || *c == '?' || *c == '#')
			return "must be the path of a request, without its query";
	}
	return path[0] == '/' ? NULL : "must begin with /";
}

static const struct field rows[] = {
	{"path", FIELD_STRING, offsetof(struct ticket_body, path), 1, TICKET_PATH_MAX - 1,
		FIELD_REQUIRED,
		"What it is for: /v1/sandboxes/{id}/terminal, or /login for a link that signs a "
		"browser in.",
		.check = check_path},
};
const struct fields tickets_fields = {rows, array_len(rows)};

HANDLER(tickets_create)
{
	struct api *api = context;
	struct ticket_body body = {0};
	char ticket[SECRET_TEXT_MAX];
	int r = fields_decode(&tickets_fields, request_body(req), &body, err);

	/* Else whoever stole a session could make others of it, which its end would not end. */
	if (r == 0 && request_principal(req)->login_id[0] && strcmp(body.path, LOGIN_PATH) == 0)
		r = err_explain(err, ERR_DENIED, "needs_token", "use the token itself",
			"a session of a browser opens no other");
	if (r == 0)
		r = ticket_table_issue(api->gate.tickets, request_principal(req), body.path,
			clock_steady_ms(), TICKET_LIFE_MS, ticket, err);
	if (r < 0)
		return r;
	request_answer_json(req, 201,
		json_pack("{s:s, s:o}", "ticket", ticket, "expires_at",
			api_time_to_json(clock_wall_ms() + TICKET_LIFE_MS)));
	return 0;
}
