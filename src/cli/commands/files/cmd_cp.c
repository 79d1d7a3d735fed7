/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "cli/command.h"
#include "cli/copy/destination.h"
#include "cli/copy/transfer.h"
#include "cli/remote/endpoint.h"
#include "cli/remote/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cp_values {
	const char *member;
};

static const struct option options[] = {
	OPTION_MEMBER(offsetof(struct cp_values, member)),
	{OPTION_END},
};

/*
 * Where a copy of `source` goes when it is sent to `target`: inside it, under its own name, if that
 * is a directory; else there.
 */
static char *place(const char *target, bool target_is_dir, const char *source)
{
	auto_free char *name = source ? endpoint_basename(source) : NULL;

	return target_is_dir && name ? endpoint_join(target, name) : mem_strdup(target);
}

static int upload(struct client *client, const struct endpoint *from, const char *id,
	const struct endpoint *to, struct err *err)
{
	auto_fd int fd = from->kind == ENDPOINT_STDIO ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
						      : open(from->path, O_RDONLY | O_CLOEXEC);
	auto_free char *target = NULL;
	struct transfer_stat remote;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cli_file_error(
			errno, "open", from->path ? from->path : "standard input", err);
	r = transfer_stat(client, id, to->path, &remote, err);
	if (r < 0)
		return r;
	if (from->kind == ENDPOINT_STDIO && (remote.is_dir || to->names_a_dir))
		return err_set(err, ERR_INVALID, "%s is a directory: name the file to make in it",
			to->path);
	target = place(to->path, remote.is_dir || to->names_a_dir, from->path);
	if (S_ISDIR(st.st_mode))
		return transfer_put_tree(client, id, target, from->path, err);
	return transfer_put_fd(
		client, id, target, fd, S_ISREG(st.st_mode) && from->path ? st.st_mode : 0, err);
}

static int download(struct client *client, const struct endpoint *from, const char *id,
	const struct endpoint *to, struct err *err)
{
	auto_(destination_fini) struct destination destination = DESTINATION_INIT;
	auto_fd int special = -1;
	struct transfer_stat remote;
	int r = transfer_stat(client, id, from->path, &remote, err);

	if (r < 0)
		return r;
	if (!remote.exists)
		return err_set(err, ERR_NOT_FOUND, "there is no %s in sandbox %s", from->path, id);
	if (to->kind == ENDPOINT_STDIO)
		return transfer_get_fd(client, id, from->path, &remote, STDOUT_FILENO, err);
	r = destination_open_special(to->path, &special, err);
	if (r > 0)
		return transfer_get_fd(client, id, from->path, &remote, special, err);
	if (r == 0)
		r = destination_open(to->path, to->names_a_dir, from->path, &destination, err);
	if (r < 0)
		return r;
	if (remote.is_dir)
		return transfer_get_tree(client, id, from->path, &destination, err);
	return transfer_get_file(client, id, from->path, &remote, &destination, err);
}

static int copy(struct cli *cli, const struct cp_values *v, const struct endpoint *from,
	const struct endpoint *to, struct err *err)
{
	bool is_upload = to->kind == ENDPOINT_REMOTE;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	int r;

	if (is_upload == (from->kind == ENDPOINT_REMOTE))
		return err_explain(err, ERR_INVALID, NULL,
			"sandlot cp LOCAL ID:PATH, or ID:PATH LOCAL",
			"exactly one side of a copy must be in a sandbox");
	r = cli_connect(cli, &client, err);
	if (r == 0)
		client_mean_member(client, v->member);
	if (r == 0)
		r = resolve_id(client, is_upload ? to->id : from->id, id, err);
	if (r < 0)
		return r;
	return is_upload ? upload(client, from, id, to, err) : download(client, from, id, to, err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	auto_(endpoint_fini) struct endpoint from = {0};
	auto_(endpoint_fini) struct endpoint to = {0};
	int r = endpoint_parse(argv[0], &from, err);

	(void)argc;
	if (r == 0)
		r = endpoint_parse(argv[1], &to, err);
	if (r == 0)
		r = copy(cli, values, &from, &to, err);
	return r;
}

const struct command cmd_cp = {
	.name = "cp",
	.operands = "FROM TO",
	.summary = "copy files into or out of a sandbox",
	.details =
		"One side is ID:PATH, the other a local path or - (standard input or output).\n"
		"Directories are copied with all they hold; into a directory that exists they go "
		"under\n"
		"their own name, DIR/. copies the content alone. A relative PATH starts at "
		"/workspace.\n"
		"A local name with a colon is written ./a:b. A directory to - is a tar archive.\n\n"
		"Symbolic links are copied as they are. Out of a sandbox, what is copied takes the "
		"place\n"
		"of what has its name, also of a link; nothing is written through a link below "
		"the\n"
		"local directory that was named.\n\n"
		"  sandlot cp main.py 01k9:\n"
		"  sandlot cp ./src 01k9:/workspace/src\n"
		"  sandlot cp 01k9:/workspace/outputs ./results\n"
		"  echo hi | sandlot cp - 01k9:notes.txt\n"
		"  sandlot cp --member database 01k9:/volumes/dump.sql .\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct cp_values),
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_FILES,
	.run = run,
};
