/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start, stop, pause, resume, reset, purge, rm: one request for each id, the id printed when it is
 * done. One that fails does not keep the others from being tried; the exit code tells.
 */
#include "cli/command.h"
#include "cli/orphan_ids.h"
#include "cli/remote/listing.h"
#include "cli/remote/removal.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/input/question.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct rm_values {
	bool all;
	bool force;
	bool purge;
};

static const struct option rm_options[] = {
	{OPTION_FLAG, 'a', "all", NULL, "all sandboxes that you have; asks first",
		offsetof(struct rm_values, all)},
	{OPTION_FLAG, 'f', "force", NULL, "with --all: do not ask",
		offsetof(struct rm_values, force)},
	{OPTION_FLAG, 0, "purge", NULL, "remove the workspace as well",
		offsetof(struct rm_values, purge)},
	{OPTION_END},
};

struct purge_values {
	bool force;
	bool orphan;
};

static const struct option purge_options[] = {
	{OPTION_FLAG, 'f', "force", NULL, "do not ask about a sandbox that still exists",
		offsetof(struct purge_values, force)},
	{OPTION_FLAG, 'y', "yes", NULL, "the same", offsetof(struct purge_values, force)},
	{OPTION_FLAG, 0, "orphan", NULL, "an orphan of sandlot ls --orphans, with all its files",
		offsetof(struct purge_values, orphan)},
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

/* One that still exists is asked about, if somebody is there: what a removed one left was given up before. */
static int ask_about(struct client *client, const char *id, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", id), *question = NULL;
	json_auto_t *sandbox = NULL;
	const char *name, *status;
	int r = client_json(
		client, &(struct client_call){.method = "GET", .path = path}, &sandbox, err);

	if (r < 0)
		return err->kind == ERR_NOT_FOUND ? 0 : r;
	name = cli_text(sandbox, "name");
	status = cli_text(sandbox, "status");
	question = mem_printf("Remove the sandbox %s, which is %s, with all its files?",
		name[0] ? name : id, status);
	return question_ask(question, err);
}

static int post_purge(struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err)
{
	const struct purge_values *values = arg;
	int r = 0;

	if (!values->force && question_has_listener())
		r = ask_about(client, id, err);
	if (r == 0)
		r = post(client, id, "purge", ret_answer, err);
	return r;
}

static int delete (struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err)
{
	const struct rm_values *values = arg;

	(void)ret_answer;
	return removal_run(client, id, values->purge, err);
}

static int purge_orphan(struct client *client, const char *id, const void *arg, json_t **ret_answer,
	struct err *err)
{
	auto_free char *path = mem_printf("/v1/orphans/%s", id);

	(void)arg;
	return client_json(
		client, &(struct client_call){.method = "DELETE", .path = path}, ret_answer, err);
}

/* A person is told what was lost, a script whose. */
static void tell_done(verb_fn verb, const char *id)
{
	bool is_read = isatty(STDOUT_FILENO) == 1;

	if (is_read && verb == post_purge)
		cli_note("purged %s: its workspace and all files in it are gone", id);
	else if (is_read && verb == purge_orphan)
		cli_note("purged the orphan %s: all its files are gone", id);
	else
		puts(id);
	fflush(stdout);
}

static int one(struct cli *cli, const char *text, verb_fn verb, const void *arg, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *answer = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0 && verb == purge_orphan && orphan_ids_is_layer(text)) {
		r = purge_orphan(client, text, arg, &answer, err);
		if (r == 0 && !cli_wants_json(cli))
			tell_done(verb, text);
		return r;
	}
	if (r == 0 && verb == purge_orphan)
		r = orphan_ids_resolve(client, text, id, err);
	else if (r == 0 && verb == post_purge)
		r = resolve_left(client, text, id, err);
	else if (r == 0)
		r = resolve_id(client, text, id, err);
	if (r == 0)
		r = verb(client, id, arg, &answer, err);
	if (r < 0)
		return r;
	if (!cli_wants_json(cli)) {
		tell_done(verb, id);
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

/* Also one that is stopped already is started, so that afterwards it runs in any case. */
static int stop_and_start(struct client *client, const char *id, const void *arg,
	json_t **ret_answer, struct err *err)
{
	json_auto_t *stopped = NULL;
	int r = post(client, id, "stop", &stopped, err);

	(void)arg;
	return r < 0 ? r : post(client, id, "start", ret_answer, err);
}

static int run_restart(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, stop_and_start, NULL, err);
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

static int run_undo(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	return each(cli, argc, argv, post, "undo", err);
}

static int run_purge(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct purge_values *v = values;

	if (v->orphan)
		return each(cli, argc, argv, purge_orphan, NULL, err);
	return each(cli, argc, argv, post_purge, v, err);
}

/* Each sandbox that there is. */
static int remove_all(struct cli *cli, const struct rm_values *v, struct err *err)
{
	json_auto_t *sandboxes = NULL;
	auto_free char *question = NULL;
	auto_free char **ids = NULL;
	struct client *client;
	const json_t *sandbox;
	size_t i;
	int count = 0;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch(client, &(struct listing_filter){0}, &sandboxes, err);
	if (r < 0 || json_array_size(sandboxes) == 0)
		return r;
	question = mem_printf("Remove %zu sandboxes%s?", json_array_size(sandboxes),
		v->purge ? " with all their files" : "");
	if (!v->force)
		r = question_ask(question, err);
	if (r < 0)
		return r;
	ids = mem_new(json_array_size(sandboxes) * sizeof(*ids));
	json_array_foreach(sandboxes, i, sandbox)
	{
		if (resolve_is_whole(cli_text(sandbox, "id")))
			ids[count++] = (char *)cli_text(sandbox, "id");
	}
	return each(cli, count, ids, delete, v, err);
}

static int run_rm(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct rm_values *v = values;
	int r;

	if (v->all == (argc > 0))
		return err_explain(err, ERR_INVALID, NULL, "sandlot rm ID..., or sandlot rm --all",
			v->all ? "--all goes with no id" : "there is no sandbox to remove");
	r = v->all ? remove_all(cli, v, err) : each(cli, argc, argv, delete, values, err);
	if (r == 0 && !v->purge && !cli_wants_json(cli))
		cli_note("the workspace stays: \"sandlot ls --removed\" shows it, \"sandlot "
			 "purge\" or \"sandlot prune\" removes it");
	return r;
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
	VERB(purge, "remove sandboxes with all their files",
		"Removes the workspace for good: of a sandbox that was removed, and of one that "
		"still\n"
		"exists or runs, which it ends. On a terminal it asks about such a one first.\n"),
	.tables = {{purge_options, 0}},
	.values_size = sizeof(struct purge_values),
};

const struct command cmd_reset = {
	VERB(reset, "empty agent_workspace, outputs and the system layer",
		"Ends all processes and starts afresh, if it ran. Emptied: agent_workspace, "
		"outputs, and\n"
		"all changes outside /workspace. Kept: project_files, and files directly in "
		"/workspace.\n"),
};

const struct command cmd_restart = {
	VERB(restart, "stop sandboxes and start them again",
		"Ends all processes, keeps all files, and runs the start commands again.\n"),
};

const struct command cmd_resume = {
	VERB(resume, "let paused sandboxes go on", NULL),
};

const struct command cmd_rm = {
	.name = "rm",
	.alias = "delete",
	.operands = "ID...",
	.summary = "remove sandboxes",
	.details = "Ends the sandbox. Its workspace stays on disk until it is purged: see ls "
		   "--removed, purge\n"
		   "and prune.\n\n"
		   "  sandlot rm --purge 01k9\n"
		   "  sandlot rm --all\n"
		   "  sandlot rm --purge $(sandlot ls -q --label team=web)\n",
	.tables = {{rm_options, 0}},
	.values_size = sizeof(struct rm_values),
	.min_operands = 0,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run_rm,
};

const struct command cmd_start = {
	VERB(start, "start stopped sandboxes", NULL),
};

const struct command cmd_stop = {
	VERB(stop, "stop sandboxes and keep their workspaces", NULL),
};

const struct command cmd_undo = {
	VERB(undo, "go back to before the last command with a checkpoint",
		"Gives a sandbox all files that it had before the last exec --checkpoint. What "
		"runs in\n"
		"it ends; if it ran, it is started again. Once more goes further back.\n"),
};
