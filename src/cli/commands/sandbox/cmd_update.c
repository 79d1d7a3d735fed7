/* SPDX-License-Identifier: Apache-2.0 */
/* update: changes sandboxes as they run; what is not named stays. */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/remote/resolve.h"

#include <stdio.h>
#include <string.h>

struct update_values {
	struct create_spec spec; /* only what update_options fill */
	struct option_list removed_labels;
};

#define AT(field) offsetof(struct update_values, field)

static const struct option options[] = {
	{OPTION_TEXT, 0, "cpu", "CORES", "processor limit, such as 0.5 or 2", AT(spec.cpu)},
	{OPTION_TEXT, 0, "memory", "SIZE", "memory limit, such as 512Mi", AT(spec.memory)},
	{OPTION_TEXT, 0, "disk", "SIZE", "disk limit, such as 2Gi", AT(spec.disk)},
	{OPTION_NUMBER, 0, "pids", "N", "limit of processes and threads", AT(spec.pids)},
	{OPTION_LIMIT, 0, "idle-timeout", "TIME", "stop after so long without use: 30m, or never",
		AT(spec.idle_timeout)},
	{OPTION_LIMIT, 0, "lifetime", "TIME", "end so long after the creation: 8h, or never",
		AT(spec.lifetime)},
	{OPTION_LIST, 'l', "label", "K=V", "set a label; may be repeated", AT(spec.labels)},
	{OPTION_TEXT, 0, "name", "NAME", "give it another name", AT(spec.name)},
	{OPTION_LIST, 'p', "port", "N[:HOW]",
		"the ports with previews, all of them; may be repeated", AT(spec.ports)},
	{OPTION_LIST, 0, "remove-label", "K", "take a label away; may be repeated",
		AT(removed_labels)},
	{OPTION_TEXT, 0, "start", "LINE", "run this whenever the sandbox starts", AT(spec.start)},
	{OPTION_END},
};

/* The API replaces all labels: those that are there are kept, but for what is named. */
static int merge_labels(struct client *client, const char *id, const struct update_values *v,
	json_t *body, struct err *err)
{
	json_auto_t *sandbox = NULL;
	json_t *labels;
	int r;

	if (v->spec.labels.count + v->removed_labels.count == 0)
		return 0;
	r = resolve_get(client, id, "", &sandbox, err);
	if (r < 0)
		return r;
	labels = json_object_get(sandbox, "labels");
	if (!json_is_object(labels))
		return err_set(err, ERR_INTERNAL, "the daemon did not tell the labels");
	for (size_t i = 0; i < v->removed_labels.count; i++)
		json_object_del(labels, v->removed_labels.items[i]);
	json_object_update(labels, json_object_get(body, "labels"));
	json_object_set(body, "labels", labels);
	return 0;
}

static int update(struct cli *cli, const char *text, const struct update_values *v, struct err *err)
{
	json_auto_t *body = NULL, *answer = NULL;
	auto_free char *path = NULL;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	int r = create_spec_body(&v->spec, &body, err);

	if (r == 0 && json_object_size(body) + v->removed_labels.count == 0)
		return err_explain(err, ERR_INVALID, NULL, "see \"sandlot update --help\"",
			"there is nothing to change");
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = resolve_id(client, text, id, err);
	if (r == 0)
		r = merge_labels(client, id, v, body, err);
	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s", id);
	r = client_json(client,
		&(struct client_call){.method = "PATCH", .path = path, .body = body}, &answer, err);
	if (r < 0)
		return r;
	create_spec_warn(answer);
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		puts(id);
	return 0;
}

/* One that fails does not keep the others from being tried; the exit code tells. */
static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	int exit_code = 0;

	for (int i = 0; i < argc; i++) {
		int r = update(cli, argv[i], values, err);

		if (r < 0 && argc == 1)
			return r;
		if (r < 0) {
			cli_complain(err, argv[i]);
			exit_code = cli_exit_code(err);
		}
	}
	return exit_code;
}

const struct command cmd_update = {
	.name = "update",
	.operands = "ID...",
	.summary = "change limits, timeouts, labels and ports of sandboxes",
	.details =
		"What is not named stays. Limits change at once, also while a sandbox runs; what "
		"it uses\n"
		"already is not taken away.\n\n"
		"  sandlot update --memory 1Gi --cpu 2 01k9\n"
		"  sandlot update --idle-timeout never --label team=web 01k9\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct update_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
