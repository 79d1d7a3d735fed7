/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/terminal/follow.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define JOBS "/v1/jobs"

static bool is_id(const char *text)
{
	return strlen(text) == 26 && strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == 26;
}

static int check_id(const char *text, struct err *err)
{
	return is_id(text) ? 0 : err_set(err, ERR_INVALID, "%.40s is no id of a job", text);
}

/* --- ls --- */

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
		table_add(&table, "%s",
			json_is_object(error) ? cli_text(error, "message")
					      : cli_text(job, "progress"));
		table_add_age(&table, cli_text(job, "created_at"));
	}
	table_print(&table, stdout);
}

static int list(struct cli *cli, struct client *client, char **ids, struct err *err)
{
	json_auto_t *jobs = NULL;
	int r = listing_fetch_all(client, JOBS, "jobs", &jobs, err);

	(void)ids;
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

static int ask(struct client *client, const char *method, const char *id, const char *rest,
	json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf(JOBS "/%s%s", id, rest);
	int r = check_id(id, err);

	return r < 0 ? r
		     : client_json(client, &(struct client_call){.method = method, .path = path},
			       ret, err);
}

static int show(struct cli *cli, struct client *client, char **ids, struct err *err)
{
	json_auto_t *job = NULL;
	int r = ask(client, "GET", ids[0], "", &job, err);

	(void)cli;
	if (r == 0)
		cli_print_json(job);
	return r;
}

static int cancel(struct cli *cli, struct client *client, char **ids, struct err *err)
{
	json_auto_t *job = NULL;
	int r = ask(client, "POST", ids[0], "/cancel", &job, err);

	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(job);
	else
		cli_print("%s %s\n", ids[0],
			json_is_true(json_object_get(job, "cancelling")) ? "cancelling"
									 : cli_text(job, "state"));
	return 0;
}

/* --- log --- */

static int show_log(struct cli *cli, struct client *client, char **ids, struct err *err)
{
	struct follow follow = {.job = ids[0]};
	json_auto_t *job = NULL;
	int r = check_id(ids[0], err);

	(void)cli;
	return r < 0 ? r : follow_run(client, &follow, &job, err);
}

/* --- the command --- */

static const struct {
	const char *name;
	int operands;
	int (*run)(struct cli *cli, struct client *client, char **ids, struct err *err);
} verbs[] = {
	{"cancel", 1, cancel},
	{"log", 1, show_log},
	{"ls", 0, list},
	{"show", 1, show},
};

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	struct client *client;
	int r;

	(void)values;
	for (size_t i = 0; i < array_len(verbs); i++) {
		if (strcmp(verbs[i].name, argv[0]) != 0 || verbs[i].operands != argc - 1)
			continue;
		r = cli_connect(cli, &client, err);
		return r < 0 ? r : verbs[i].run(cli, client, argv + 1, err);
	}
	return err_explain(err, ERR_INVALID, NULL, "see \"sandlot job --help\"",
		"job: ls; or show, log or cancel with the id of a job");
}

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
	.run = run,
};
