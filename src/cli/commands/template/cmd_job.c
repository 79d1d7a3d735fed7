/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/terminal/process/follow.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define JOBS	     "/v1/jobs"
#define PROGRESS_MAX 60 /* bytes of a row; show and log have the rest */

static bool is_id(const char *text)
{
	return strlen(text) == 26 && strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == 26;
}

static int check_id(const char *text, struct err *err)
{
	return is_id(text) ? 0 : err_set(err, ERR_INVALID, "%.40s is no id of a job", text);
}

/* --- ls --- */

static void add_progress(struct table *table, const char *text)
{
	size_t len = PROGRESS_MAX - strlen("...");

	if (strlen(text) <= PROGRESS_MAX)
		table_add(table, "%s", text);
	else
		table_add(table, "%.*s...", (int)(len - format_unfinished(text, len)), text);
}

static void print_table(const json_t *jobs)
{
	static const char *const heading[] = {"ID", "KIND", "TARGET", "STATE", "PROGRESS", "AGE"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *job;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)jobs, i, job)
	{
		const json_t *error = json_object_get(job, "error");

		table_add(&table, "%s", cli_text(job, "id"));
		table_add(&table, "%s", cli_text(job, "kind"));
		table_add(&table, "%s", cli_text(job, "target"));
		table_add(&table, "%s", cli_text(job, "state"));
		add_progress(&table, json_is_object(error) ? cli_text(error, "message")
							   : cli_text(job, "progress"));
		table_add_age(&table, cli_text(job, "created_at"));
	}
	table_print(&table, stdout);
}

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	json_auto_t *jobs = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch_all(client, JOBS, "jobs", &jobs, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "jobs", jobs);

		cli_print_json(document);
	} else {
		print_table(jobs);
	}
	return 0;
}

/* --- show, cancel --- */

static int ask(const struct command_call *call, const char *method, const char *rest, json_t **ret,
	struct err *err)
{
	auto_free char *path = mem_printf(JOBS "/%s%s", call->argv[0], rest);
	struct client *client;
	int r = check_id(call->argv[0], err);

	if (r == 0)
		r = cli_connect(call->cli, &client, err);
	return r < 0 ? r
		     : client_json(client, &(struct client_call){.method = method, .path = path},
			       ret, err);
}

static int show(const struct command_call *call, struct err *err)
{
	json_auto_t *job = NULL;
	int r = ask(call, "GET", "", &job, err);

	if (r == 0)
		cli_print_json(job);
	return r;
}

static int cancel(const struct command_call *call, struct err *err)
{
	json_auto_t *job = NULL;
	int r = ask(call, "POST", "/cancel", &job, err);

	if (r < 0)
		return r;
	if (cli_wants_json(call->cli))
		cli_print_json(job);
	else
		cli_print("%s %s\n", call->argv[0],
			json_is_true(json_object_get(job, "cancelling")) ? "cancelling"
									 : cli_text(job, "state"));
	return 0;
}

/* --- log --- */

static int show_log(const struct command_call *call, struct err *err)
{
	struct follow follow = {.job = call->argv[0]};
	json_auto_t *job = NULL;
	struct client *client;
	int r = check_id(call->argv[0], err);

	if (r == 0)
		r = cli_connect(call->cli, &client, err);
	return r < 0 ? r : follow_run(client, &follow, &job, err);
}

/* --- the command --- */

static const struct command_verb verbs[] = {
	{"cancel", "ID", 1, 1, cancel},
	{"log", "ID", 1, 1, show_log},
	{"ls", "", 0, 0, list},
	{"show", "ID", 1, 1, show},
	{0},
};

const struct command cmd_job = {
	.name = "job",
	.operands = "ls|show|log|cancel [ID]",
	.summary = "list, look at, follow and cancel jobs",
	.details = "A job is something that outlasts the request for it, such as a backup, and "
		   "also the\n"
		   "daemon. log prints what it has to say and waits for its end; a lost connection "
		   "is made\n"
		   "again and nothing is shown twice.\n\n"
		   "  sandlot job ls\n"
		   "  sandlot job log 01k9x3c8d0p5w6v7q2t4r1h9ms\n"
		   "  sandlot job cancel 01k9x3c8d0p5w6v7q2t4r1h9ms\n",
	.min_operands = 1,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.verbs = verbs,
};
