/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/data_dir.h"
#include "base/fd.h"

#include "cli/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_URL "http://127.0.0.1:9090"

const struct option cli_options[] = {
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

/* Where the daemon of a data directory listens: it writes that down there. NULL if none does. */
static char *url_of(const char *data_dir)
{
	auto_free char *path = mem_printf("%s/run/api.addr", data_dir);
	char address[128];

	if (fd_read_file(AT_FDCWD, path, address, sizeof(address)) <= 0)
		return NULL;
	address[strcspn(address, "\n")] = '\0';
	return mem_printf("http://%s", address);
}

/* Of the data directory that was named, or else of the user's own daemon, or of root's. */
static char *local_url(void)
{
	const char *named = getenv("SANDLOT_DATA_DIR");
	auto_free char *own = geteuid() == 0 ? NULL : data_dir_of_user();
	char *url = NULL;

	if (named && named[0]) {
		url = url_of(named);
	} else {
		url = own ? url_of(own) : NULL;
		url = url ? url : url_of(DATA_DIR_OF_ROOT);
	}
	return url ? url : mem_strdup(DEFAULT_URL);
}

int cli_connect(struct cli *cli, struct client **ret, struct err *err)
{
	const char *url = cli->url ? cli->url : getenv("SANDLOT_URL");

	if (!cli->client) {
		auto_free char *local = url && url[0] ? NULL : local_url();
		int r = client_new(local ? local : url, cli->token, &cli->client, err);

		if (r < 0)
			return r;
	}
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
