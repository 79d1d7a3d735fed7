/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "cli/note.h"
#include "cli/peer.h"
#include "cli/table.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_URL "http://127.0.0.1:9090"

const struct option cli_options[] = {
	{OPTION_TEXT, 0, "ca-file", "FILE",
		"who signs the daemon's certificate, instead of SANDLOT_CA_FILE or the system's",
		offsetof(struct cli, ca_file)},
	{OPTION_FLAG, 'h', "help", NULL, "show this help", offsetof(struct cli, help)},
	{OPTION_FLAG, 0, "json", NULL, "the same as -o json", offsetof(struct cli, json)},
	{OPTION_CHOICE, 'o', "output", "FORMAT", "table or json", offsetof(struct cli, output),
		"table json"},
	{OPTION_TEXT, 0, "token", "TOKEN", "API token, instead of SANDLOT_TOKEN or the token file",
		offsetof(struct cli, token)},
	{OPTION_TEXT, 0, "url", "URL", "address of the daemon, instead of SANDLOT_URL",
		offsetof(struct cli, url)},
	{OPTION_FLAG, 0, "version", NULL, "show the version of this program",
		offsetof(struct cli, version)},
	{OPTION_END},
};

void cli_fini(struct cli *cli)
{
	client_free(cli->client);
	cli->client = NULL;
}

bool cli_wants_json(const struct cli *cli)
{
	return cli->json || (cli->output && strcmp(cli->output, "json") == 0);
}

static int connect_locally(struct cli *cli, const char *ca_file, struct err *err)
{
	struct peer_address address = {.url = DEFAULT_URL, .ca_file = ca_file};
	struct note note;
	int r = note_find(&note);

	/* By now anybody may listen where it did, which is most likely the usual address. */
	address.is_guess = r == 0;
	if (r > 0) {
		address.url = note.url;
		address.pin = note.pin;
		address.note_path = note.path;
	}
	return client_new(&address, cli->token, &cli->client, err);
}

int cli_connect(struct cli *cli, struct client **ret, struct err *err)
{
	const char *url = cli->url ? cli->url : getenv("SANDLOT_URL");
	const char *ca_file = cli->ca_file ? cli->ca_file : getenv("SANDLOT_CA_FILE");
	struct peer_address address = {.url = url, .ca_file = ca_file};
	int r = 0;

	if (!cli->client)
		r = url && url[0] ? client_new(&address, cli->token, &cli->client, err)
				  : connect_locally(cli, ca_file, err);
	if (r < 0)
		return r;
	*ret = cli->client;
	return 0;
}

void cli_print_json(const json_t *document)
{
	json_dumpf(document, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
	putchar('\n');
	fflush(stdout);
}

void cli_complain(const struct err *err, const char *prefix)
{
	char message[sizeof(err->message)];
	char remedy[sizeof(err->remedy)];

	/* Both may come from a server: no control characters onto the terminal. */
	memcpy(message, err->message, sizeof(message));
	memcpy(remedy, err->remedy, sizeof(remedy));
	table_tame(message);
	table_tame(remedy);
	fflush(stdout);
	fprintf(stderr, "sandlot: %s%s%s\n", prefix ? prefix : "", prefix ? ": " : "", message);
	if (remedy[0])
		fprintf(stderr, "  → %s\n", remedy);
}

void cli_note(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_tame(text);
	fflush(stdout);
	fprintf(stderr, "sandlot: %s\n", text);
}

int cli_write(int fd, const void *data, size_t len, struct err *err)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n >= 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EAGAIN) {
			/* The terminal is shared with a program that made it non-blocking. */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			return err_sys(err, "write %s",
				fd == STDOUT_FILENO ? "standard output" : "output");
		}
	}
	return 0;
}

int cli_exit_code(const struct err *err)
{
	return err_class((enum err_kind)err->kind)->exit_code;
}

const char *cli_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}
