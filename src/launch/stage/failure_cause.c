/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/failure_cause.h"

#include "base/format.h"
#include "launch/stage/log_text.h"

#include <stdio.h>
#include <string.h>

#define DETAIL_MAX 160

#define DISK_FULL   "the disk of the sandbox is full"
#define MORE_DISK   "give the sandbox a larger disk"
#define MORE_MEMORY "give the sandbox more memory"

#define UNTRUSTED                                                                                  \
	"untrusted_certificate", "a server has a certificate that the program does not trust"
#define TRUST_NODE                                                                                 \
	"give it the file of the CA, as the sandbox has it: sandlot launch -e "                    \
	"NODE_EXTRA_CA_CERTS=FILE"
#define TRUST_PYTHON                                                                               \
	"give it the file of the CA, as the sandbox has it: sandlot launch -e PIP_CERT=FILE "      \
	"(SSL_CERT_FILE for the app itself)"

/* What stands between `before` and `until` (NULL: nothing) is told behind the message. */
static const struct {
	const char *before, *until;
	const char *code, *message, *remedy;
} causes[] = {
	{"ModuleNotFoundError: No module named '", "'", "missing_module",
		"a Python module is missing", "add it to requirements.txt"},
	/* python3 -m says it in other words. */
	{": No module named ", "\n", "missing_module", "a Python module is missing",
		"add it to requirements.txt"},
	{"ImportError: cannot import name '", "'", "missing_module", "a name cannot be imported",
		"check the versions in requirements.txt"},
	{"Cannot find module '", "'", "missing_module", "a module is missing",
		"add it to the dependencies in package.json, or correct the path"},
	{"Cannot find package '", "'", "missing_module", "a package is missing",
		"add it to the dependencies in package.json"},
	{"Failed to resolve import \"", "\"", "missing_module", "an import is missing",
		"add it to the dependencies in package.json, or correct the path"},
	{"Module not found: Can't resolve '", "'", "missing_module", "a module is missing",
		"add it to the dependencies in package.json, or correct the path"},
	{"issing script: \"", "\"", "missing_script", "package.json has no such script",
		"add it to scripts, or say the command in sandlot.json"},
	{"EADDRINUSE: address already in use ", "\n", "port_in_use", "the port is in use",
		"another process of the sandbox has it: end that, or choose another port"},
	{"address already in use", NULL, "port_in_use", "the port is in use",
		"another process of the sandbox has it: end that, or choose another port"},
	{"Address already in use", NULL, "port_in_use", "the port is in use",
		"another process of the sandbox has it: end that, or choose another port"},
	{"Port ", " is already in use", "port_in_use", "the port is in use",
		"another process of the sandbox has it: end that, or choose another port"},
	{"SyntaxError: ", "\n", "syntax_error", "a file has a syntax error",
		"correct the file and launch again"},
	{"SyntaxError [", "\n", "syntax_error", "a file has a syntax error",
		"correct the file and launch again"},
	/* esbuild, by which Vite and tsx read TypeScript. */
	{": ERROR: ", "\n", "syntax_error", "a file has a syntax error",
		"correct the file and launch again"},
	{"TabError: ", "\n", "syntax_error", "a file has a syntax error",
		"correct the file and launch again"},
	{"IndentationError: ", "\n", "syntax_error", "a file has a syntax error",
		"correct the file and launch again"},
	{"error TS", "\n", "type_error", "types do not fit", "correct the file and launch again"},
	/* pip says behind it that it has found nothing. */
	{"SELF_SIGNED_CERT_IN_CHAIN", NULL, UNTRUSTED, TRUST_NODE},
	{"DEPTH_ZERO_SELF_SIGNED_CERT", NULL, UNTRUSTED, TRUST_NODE},
	{"UNABLE_TO_GET_ISSUER_CERT_LOCALLY", NULL, UNTRUSTED, TRUST_NODE},
	{"UNABLE_TO_VERIFY_LEAF_SIGNATURE", NULL, UNTRUSTED, TRUST_NODE},
	{"CERTIFICATE_VERIFY_FAILED", NULL, UNTRUSTED, TRUST_PYTHON},
	{"code ERESOLVE", NULL, "version_conflict", "npm finds no versions that fit each other",
		"correct the versions in package.json"},
	{"No matching version found for ", "\n", "package_not_found",
		"the registry has no such version", "correct the version in package.json"},
	{"404  The requested resource '", "'", "package_not_found",
		"the registry has no such package", "correct the name or version in package.json"},
	{"404  '", "'", "package_not_found", "the registry has no such package",
		"correct the name or version in package.json"},
	{"code E404", NULL, "package_not_found", "the registry has no such package",
		"correct the name or version in package.json"},
	{"No matching distribution found for ", "\n", "package_not_found",
		"the registry has no such package", "correct requirements.txt"},
	{"ENOSPC", NULL, "disk_full", DISK_FULL, MORE_DISK},
	{"No space left on device", NULL, "disk_full", DISK_FULL, MORE_DISK},
	{"npm error code ", "\n", "install_failed", "npm failed",
		"read the last lines of the stage"},
	{"JavaScript heap out of memory", NULL, "out_of_memory", "it used all of its memory",
		MORE_MEMORY},
	{"ECONNREFUSED ", "\n", "connection_refused", "nothing takes connections at",
		"start what listens there; a launch makes PostgreSQL and Redis where it sees that "
		"they are used, or where \"services\" of sandlot.json says so"},
	{": not found", NULL, "missing_program", "a program was not found",
		"choose a template that has it"},
};

/* The first place where a text stands with its end on the same line; NULL if there is none. */
static const char *find_words(const char *output, const char *before, const char *until)
{
	for (const char *at = output; (at = strstr(at, before)); at++) {
		const char *rest = at + strlen(before), *end = until ? strstr(rest, until) : rest;

		if (!until || until[0] == '\n' || (end && end <= rest + strcspn(rest, "\n")))
			return at;
	}
	return NULL;
}

/* server.ts:2:8 of esbuild, on the line of the error. */
static bool find_place_beside(const char *output, const char *error, char place[DETAIL_MAX])
{
	const char *from = error;
	unsigned line, column;
	int end = -1;
	char file[100];

	while (from > output && from[-1] != '\n')
		from--;
	from += strspn(from, " ");
	if (sscanf(from, "%99[^: \n]:%u:%u%n", file, &line, &column, &end) != 3 ||
		from + end != error)
		return false;
	snprintf(place, DETAIL_MAX, "%s:%u", file, line);
	return true;
}

/* "main.py", line 3 of Python, or path:line of node before the error. */
static void find_place(const char *output, const char *error, char place[DETAIL_MAX])
{
	const char *at = NULL, *from = output;
	unsigned line;
	char file[100];

	if (find_place_beside(output, error, place))
		return;

	while ((from = strstr(from, "File \"")) && from < error) {
		at = from;
		from++;
	}
	if (at && sscanf(at, "File \"%99[^\"\n]\", line %u", file, &line) == 2) {
		snprintf(place, DETAIL_MAX, "%s:%u", file, line);
		return;
	}
	/* node: "/workspace/app/server.js:3" on a line of its own; of modules as "file:///...". */
	for (from = output; from < error; from += strcspn(from, "\n") + 1) {
		size_t len;

		if (strncmp(from, "file:///", 8) == 0)
			from += 7;
		len = strcspn(from, "\n");
		if (from[0] == '/' && len < sizeof(file) && !memchr(from, ' ', len) &&
			memchr(from, ':', len)) {
			snprintf(place, DETAIL_MAX, "%.*s", (int)len, from);
			return;
		}
		if (!from[len])
			break;
	}
}

/* What is told of a cause behind its message; empty if nothing is. */
static void read_detail(const char *at, const char *until, char detail[DETAIL_MAX])
{
	const char *end = until ? strstr(at, until) : at;
	size_t len = end ? (size_t)(end - at) : strlen(at);

	if (len >= DETAIL_MAX) {
		len = DETAIL_MAX - 1;
		len -= format_unfinished(at, len);
	}
	memcpy(detail, at, len);
	detail[len] = '\0';
}

void failure_cause_find(const char *output, struct failure_cause *ret_cause)
{
	*ret_cause = (struct failure_cause){.code = "failed",
		.message = "its program failed",
		.remedy = "read the last lines of the stage"};
	for (size_t i = 0; i < array_len(causes); i++) {
		const char *at = find_words(output, causes[i].before, causes[i].until);
		char detail[DETAIL_MAX], place[DETAIL_MAX] = "";

		if (!at)
			continue;
		read_detail(at + strlen(causes[i].before), causes[i].until, detail);
		if (strcmp(causes[i].code, "syntax_error") == 0)
			find_place(output, at, place);
		snprintf(ret_cause->code, sizeof(ret_cause->code), "%s", causes[i].code);
		snprintf(ret_cause->remedy, sizeof(ret_cause->remedy), "%s", causes[i].remedy);
		snprintf(ret_cause->message, sizeof(ret_cause->message), "%s%s%s%s%s%s",
			causes[i].message, detail[0] ? ": " : "", detail, place[0] ? " (" : "",
			place, place[0] ? ")" : "");
		log_text_clean(ret_cause->message);
		return;
	}
}

bool failure_cause_of_limit(const struct termination *how, struct failure_cause *ret_cause)
{
	static const struct {
		enum end_reason reason;
		const char *code, *message, *remedy;
	} limits[] = {
		{END_OOM, "out_of_memory", "it used all of its memory", MORE_MEMORY},
		{END_DISK_FULL, "disk_full", DISK_FULL, MORE_DISK},
		{END_PIDS_LIMIT, "too_many_processes", "it met the limit of processes",
			"let the sandbox have more processes"},
	};

	for (size_t i = 0; i < array_len(limits); i++) {
		if (limits[i].reason != how->reason)
			continue;
		*ret_cause = (struct failure_cause){0};
		snprintf(ret_cause->code, sizeof(ret_cause->code), "%s", limits[i].code);
		snprintf(ret_cause->remedy, sizeof(ret_cause->remedy), "%s", limits[i].remedy);
		snprintf(ret_cause->message, sizeof(ret_cause->message), "%s%s%s",
			limits[i].message, how->detail[0] ? ": " : "", how->detail);
		log_text_clean(ret_cause->message);
		return true;
	}
	return false;
}

/* The length of a name as ValueError or java.io.IOException has it, with a colon behind it; 0: it is none. */
static size_t exception_len(const char *line)
{
	size_t len =
		strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
	static const char *const ends[] = {"Error", "Exception"};

	for (size_t i = 0; i < array_len(ends) && line[len] == ':'; i++) {
		size_t end = strlen(ends[i]);

		if (len >= end && strncmp(line + len - end, ends[i], end) == 0)
			return len;
	}
	return 0;
}

void failure_cause_read_exception(const char *output, char text[FAILURE_CAUSE_EXCEPTION_LEN])
{
	text[0] = '\0';
	for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (exception_len(line) > 0)
			snprintf(text, FAILURE_CAUSE_EXCEPTION_LEN, "%.*s",
				(int)strcspn(line, "\n"), line);
	}
	log_text_clean(text);
}
