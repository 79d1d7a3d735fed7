/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start, stop, pause, resume, reset, purge, rm: one request for each id, the id printed when it is
 * done. One that fails does not keep the others from being tried; the exit code tells.
 */
#include "cli/command.h"
#include "cli/removal.h"
#include "cli/resolve.h"

#include <stdio.h>
#include <string.h>

struct rm_values {
	bool purge;
};

static const struct option rm_options[] = {
	{OPTION_FLAG, 0, "purge", NULL, "remove the workspace as well",
		offsetof(struct rm_values, purge)},
	{OPTION_END},
};

/* What is done to each; ret_answer may be left NULL. */
typedef int (*verb_fn)(struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err);

static int post(struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/%s", id, (const char *)arg);

	return client_json(
		client, &(struct client_call){.method = "POST", .path = path}, ret_answer, err);
}

static int post_purge(struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err)
{
	int r = post(client, id, arg, ret_answer, err);

	if (r == 0)
		cli_note("purged %s: its workspace and all files in it are gone", id);
	return r;
}

static int delete (struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err)
{
	const struct rm_values *values = arg;

	(void)ret_answer;
	return removal_run(client, id, values->purge, err);
}

static int one(struct cli *cli, const char *text, verb_fn verb, const void *arg, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *answer = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = resolve_id(client, text, id, err);
	if (r == 0)
		r = verb(client, id, arg, &answer, err);
	if (r < 0)
		return r;
	if (!cli_wants_json(cli)) {
		puts(id);
		fflush(stdout);
		return 0;
	}
	if (!json_object_get(answer, "id")) {
		json_decref(answer);
		answer = json_pack("{s:s}", "id", id);
	}
	cli_print_json(answer);
	return 0;
}

static int each(
	struct cli *cli, int argc, char **argv, verb_fn verb, const void *arg, struct err *err)
{
	int exit_code = 0;

	for (int i = 0; i < argc; i++) {
		int r = one(cli, argv[i], verb, arg, err);

		if (r >= 0)
			continue;
		/* One id, or no daemon: there is nothing to go on with. */
		if (argc == 1 || strcmp(err->code, "unreachable") == 0)
			return r;
		cli_complain(err, argv[i]);
		exit_code = cli_exit_code(err);
	}
	return exit_code;
}

static int run_start(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post, "start", err);
}

static int run_stop(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post, "stop", err);
}

static int run_pause(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post, "pause", err);
}

static int run_resume(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post, "resume", err);
}

static int run_reset(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post, "reset", err);
}

static int run_purge(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post_purge, "purge", err);
}

static int run_rm(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	return each(cli, argc, argv, delete, values, err);
}

#define VERB(verb, text, more)                                                                     \
	.name = #verb, .operands = "ID...", .summary = text, .details = more, .min_operands = 1,   \
	.max_operands = -1, .verbatim_after = OPTION_ANYWHERE, .takes = COMMAND_TAKES_IDS,         \
	.run = run_##verb

const struct command cmd_pause = {
	VERB(pause, "freeze sandboxes where they are",
		"Processes keep their memory and get no processor time until they are resumed.\n"),
};

const struct command cmd_purge = {
	VERB(purge, "remove what sandboxes left on disk",
		"Removes the workspace for good. Asks nothing, and says what it did.\n"),
};

const struct command cmd_reset = {
	VERB(reset, "empty agent_workspace, outputs and the system layer",
		"Ends all processes and starts afresh, if it ran. Emptied: agent_workspace, "
		"outputs, and\n"
		"all changes outside /workspace. Kept: project_files, and files directly in "
		"/workspace.\n"),
};

const struct command cmd_resume = {
	VERB(resume, "let paused sandboxes go on", NULL),
};

const struct command cmd_rm = {
	VERB(rm, "remove sandboxes",
		"Ends the sandbox. Its workspace stays on disk until it is purged.\n\n"
		"  sandlot rm --purge $(sandlot ls -q --label team=web)\n"),
	.tables = {{rm_options, 0}},
	.values_size = sizeof(struct rm_values),
};

const struct command cmd_start = {
	VERB(start, "start stopped sandboxes", NULL),
};

const struct command cmd_stop = {
	VERB(stop, "stop sandboxes and keep their workspaces", NULL),
};
