/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/exact_digits.h"
#include "base/similar.h"
#include "cli/remote/local_daemon.h"
#include "cli/remote/peer.h"
#include "cli/text/table.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
	{OPTION_FLAG, 0, "version", NULL, "show the version of this program; -v alone does so too",
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

/*
 * A name that was typed wrongly would be ignored in silence. Most that begin so are settings of the daemon, which knows
 * them (daemon/settings.h); so only what is nearly one of ours is told.
 */
static void warn_of_variables(void)
{
	static const char *const ours[] = {
		"SANDLOT_URL", "SANDLOT_TOKEN", "SANDLOT_CA_FILE", "SANDLOT_DATA_DIR"};

	for (char **variable = environ; *variable; variable++) {
		auto_free char *name = mem_printf("%.*s", (int)strcspn(*variable, "="), *variable);
		const char *meant = NULL;

		for (size_t i = 0; i < array_len(ours); i++) {
			unsigned distance = similar_distance(ours[i], name);

			if (distance == 0) {
				meant = NULL;
				break;
			}
			if (distance <= SIMILAR_MAX)
				meant = ours[i];
		}
		if (meant)
			cli_note("the variable %s is ignored; did you mean %s?", name, meant);
	}
}

int cli_connect(struct cli *cli, struct client **ret, struct err *err)
{
	const char *url = cli->url ? cli->url : getenv("SANDLOT_URL");
	struct peer_address address = {
		.url = url, .ca_file = cli->ca_file ? cli->ca_file : getenv("SANDLOT_CA_FILE")};
	auto_free char *data_dir = NULL;
	int r = 0;

	if (!url || !url[0])
		address.data_dir = data_dir = local_daemon_data_dir();
	if (!cli->client) {
		warn_of_variables();
		r = client_new(&address, cli->token, &cli->client, err);
	}
	if (r < 0)
		return r;
	*ret = cli->client;
	return 0;
}

static void put_lines(char *text, FILE *out)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		table_tame(line);
		fputs(line, out);
		if (rest)
			putc('\n', out);
	}
}

void cli_print(const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	put_lines(text, stdout);
}

char *cli_dump_json(const json_t *document, size_t flags)
{
	auto_free char *text =
		json_dumps(document, flags | JSON_REAL_PRECISION(exact_digits(document)));
	/* At worst each byte becomes an escape of six. */
	auto_(buf_fini) struct buf escaped = BUF_INIT(text ? 6 * strlen(text) + 1 : 1);
	const char *plain = text;
	size_t len;

	if (!text)
		abort();
	for (const char *at = text; *at; at += len) {
		unsigned code = table_control(at, &len);

		/* Line ends are between values here; in strings jansson escapes what is below a space. */
		if (code < 0x20)
			continue;
		buf_append(&escaped, plain, (size_t)(at - plain));
		buf_printf(&escaped, "\\u%04x", code);
		plain = at + len;
	}
	buf_append_str(&escaped, plain);
	return buf_take_str(&escaped);
}

void cli_print_json(const json_t *document)
{
	auto_free char *text = cli_dump_json(document, JSON_INDENT(2) | JSON_ENCODE_ANY);

	fputs(text, stdout);
	putchar('\n');
	fflush(stdout);
}

void cli_print_answer(const struct cli *cli, const json_t *answer, const char *line)
{
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		cli_print("%s\n", line);
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

void cli_tell(const char *text)
{
	size_t len = strlen(text);
	auto_free char *copy = mem_printf("%s%s", text, len && text[len - 1] == '\n' ? "" : "\n");

	fflush(stdout);
	put_lines(copy, stderr);
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

int cli_file_error(int errnum, const char *what, const char *path, struct err *err)
{
	bool is_missing = errnum == ENOENT || errnum == ENOTDIR;
	bool is_denied = errnum == EACCES || errnum == EPERM || errnum == EROFS;

	if (!is_missing && !is_denied)
		return err_from(err, -errnum, "%s %s", what, path);
	return err_set(err, is_missing ? ERR_NOT_FOUND : ERR_DENIED, "%s %s on this machine: %s",
		what, path, strerror(errnum));
}

const char *cli_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}
