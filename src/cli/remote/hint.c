/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/hint.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#define HINT_MAX 4096

/* A text that is the beginning of another one stands behind it. */
static const struct {
	const char *route, *command;
} rows[] = {
	{"GET /v1/sandboxes/{id}/processes", "\"sandlot ps -a ID\""},
	{"POST .../restart", "\"sandlot context restart ID CONTEXT\""},
	{"GET /v1/sandboxes/{id}/contexts", "\"sandlot context ls ID\""},
	{"GET /v1/sandboxes/{id}", "\"sandlot inspect ID\""},
	{"GET /v1/sandboxes", "\"sandlot ls\""},
	{"POST /v1/sandboxes/{id}/resume", "sandlot resume ID"},
	{"POST /v1/sandboxes/{id}/start", "sandlot start ID"},
	{"POST /v1/sandboxes/ensure", "\"sandlot ls --project NAME\""},
	{"PATCH /v1/sandboxes/{id}/ports/{port}, or sandlot open", "sandlot open ID PORT"},
	{"PATCH /v1/sandboxes/{id} with `resources`", "\"sandlot update ID --disk SIZE\""},
	{"PUT /v1/sandboxes/{id}/files, and name or run that",
		"\"sandlot cp FILE ID:PATH\", and name or run that"},
	{"PATCH /v1/sandboxes/{id} with `ports`", "sandlot update ID --port PORT"},
	{"GET .../processes/{id}/output", "\"sandlot logs -f ID PROCESS\""},
	{"PUT /v1/secrets/{name}, or sandlot secret set", "\"sandlot secret set NAME\""},
	{"GET /v1/secrets", "\"sandlot secret ls\""},
	{"PUT /v1/templates/{name}/archive", "sandlot template import NAME FILE"},
	{"POST /v1/templates/{name}/cancel", "sandlot template cancel NAME"},
	{"POST /v1/templates/{name}/build", "sandlot template build NAME"},
	{"GET /v1/jobs/{id}", "\"sandlot job log ID\""},
	{"GET /v1/jobs", "\"sandlot job ls\""},
	{"look at it with GET /v1/executions/{id} when the daemon serves again",
		"the code runs on, and the next daemon keeps what comes of it"},
	{"GET /openapi.json lists all routes",
		"client and daemon may be of different versions: see \"sandlot version\""},
	{"GET /v1/executions/{execution} has its output and its traceback; the header "
	 "Sandlot-Execution names it",
		"\"sandlot fn logs NAME\" has its output and its traceback"},
	{"GET /v1/functions/{function}/versions lists those that are kept",
		"\"sandlot fn ls\" tells the last one"},
	{"PUT /v1/functions/{function}, or sandlot fn deploy", "\"sandlot fn deploy NAME FILE\""},
	{"GET /v1/logins", "\"sandlot console ls\""},
	{"GET /v1/tokens", "\"sandlot token ls\""},
	{"set background to true and attach with GET .../terminal?process=", "sandlot exec -it ID"},
	{"send the same request with \"confirm\":", "say -y, or --confirm"},
	{"write it with PUT /v1/sandboxes/{id}/files before",
		"copy it with \"sandlot cp FILE ID:PATH\" before"},
	{"GET /v1/orphans", "\"sandlot ls --orphans\""},
	{"see GET /readyz, and `sandlot doctor`", "see \"sandlot doctor\""},
};

/* How long the route is that the text begins with; 0 if it begins with none. */
static size_t match(const char *text, const char **ret_command)
{
	for (size_t i = 0; i < array_len(rows); i++) {
		size_t len = strlen(rows[i].route);

		if (strncmp(text, rows[i].route, len) != 0)
			continue;
		*ret_command = rows[i].command;
		return len;
	}
	return 0;
}

void hint_from_remedy(const char *remedy, char *ret_hint, size_t size)
{
	auto_(buf_fini) struct buf text = BUF_INIT(HINT_MAX);
	auto_free char *hint = NULL;

	while (*remedy) {
		const char *command;
		size_t len = match(remedy, &command);

		if (len > 0)
			buf_append_str(&text, command);
		else
			buf_append(&text, remedy, 1);
		remedy += len > 0 ? len : 1;
	}
	hint = text.failed ? NULL : buf_take_str(&text);
	snprintf(ret_hint, size, "%s", hint && !strstr(hint, "/v1/") ? hint : "");
}
