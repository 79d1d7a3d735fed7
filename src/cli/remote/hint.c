/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/hint.h"

#include "base/buf.h"

#include <ctype.h>
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
	{"choose one with the parameter tag", "choose one with --tag"},
	{"PUT /v1/templates/{name}/files", "sandlot template build NAME DIR"},
	{"POST /v1/templates/{name}/cancel", "sandlot template cancel NAME"},
	{"POST /v1/templates/{name}/build", "sandlot template build NAME"},
	{"GET /v1/jobs/{id}", "\"sandlot job log JOB\""},
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
	{"list the templates that there are", "\"sandlot template ls\" lists those there are"},
	{"run commands with checkpoint: true", "run commands with \"sandlot exec --checkpoint\""},
	{"a shell that keeps its state is a terminal: \"pty\": true with exec",
		"a shell that keeps its state is a terminal: \"sandlot shell ID\""},
	{"start it with \"pty\": true", "start it with \"sandlot exec -t\""},
	{"start it with \"stdin_open\": true", "start it with \"sandlot exec -i\""},
	{"put the function with a longer timeout_ms", "deploy it again with a longer --timeout"},
	{"GET /v1/orphans", "\"sandlot ls --orphans\""},
	{"see GET /readyz, and `sandlot doctor`", "see \"sandlot doctor\""},
};

/* Fields of requests by the options that set them, for those that mean the same in all commands. */
static const struct {
	const char *field, *option;
} fields[] = {
	{"field env ", "--env"},
	{"field idle_timeout_s ", "--idle-timeout"},
	{"field labels ", "--label"},
	{"field lifetime_s ", "--lifetime"},
	{"field network.allow ", "--allow"},
	{"field network.secrets ", "--secret"},
	{"field resources.cpu ", "--cpu"},
	{"field resources.disk ", "--disk"},
	{"field resources.memory ", "--memory"},
	{"field resources.pids ", "--pids"},
	{"parameter label ", "--label"},
};

void hint_from_message(const char *message, char *ret_message, size_t size)
{
	for (size_t i = 0; i < array_len(fields); i++) {
		size_t len = strlen(fields[i].field);

		if (strncmp(message, fields[i].field, len) == 0) {
			snprintf(ret_message, size, "%s %s", fields[i].option, message + len);
			return;
		}
	}
	snprintf(ret_message, size, "%s", message);
}

void hint_replace(char *text, size_t size, const char *word, const char *by)
{
	auto_(buf_fini) struct buf changed = BUF_INIT(HINT_MAX);
	auto_free char *result = NULL;
	size_t len = strlen(word);

	for (const char *at = text; *at;) {
		bool is_word = (at == text || !isalnum((unsigned char)at[-1])) &&
			       strncmp(at, word, len) == 0 && !isalnum((unsigned char)at[len]);

		if (is_word)
			buf_append_str(&changed, by);
		else
			buf_append(&changed, at, 1);
		at += is_word ? len : 1;
	}
	result = changed.failed ? NULL : buf_take_str(&changed);
	if (result && strlen(result) < size)
		strcpy(text, result);
}

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
