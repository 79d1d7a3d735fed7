/* SPDX-License-Identifier: Apache-2.0 */
/* project: sets of files that sandboxes see. */
#include "base/fd.h"
#include "base/format.h"
#include "cli/command.h"
#include "cli/copy/transfer.h"
#include "cli/create_spec.h"
#include "cli/remote/endpoint.h"
#include "cli/remote/listing.h"
#include "cli/remote/query.h"
#include "cli/terminal/input/question.h"
#include "cli/text/table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROJECTS   "/v1/projects"
#define TARGET_MAX (4u * PATH_MAX)

struct project_values {
	const char *to, *template_name;
	struct option_list env, labels;
	bool force, quiet;
};

#define AT(field) offsetof(struct project_values, field)

static const struct option options[] = {
	{OPTION_LIST, 'e', "env", "K=V", "create: a variable of its sandboxes; may be repeated",
		AT(env)},
	{OPTION_FLAG, 'f', "force", NULL, "rm: ask nothing", AT(force)},
	{OPTION_LIST, 'l', "label", "K=V", "create: a label; may be repeated", AT(labels)},
	{OPTION_FLAG, 'q', "quiet", NULL, "ls, files: only names or paths", AT(quiet)},
	{OPTION_TEXT, 't', "template", "NAME", "create: what its sandboxes start from",
		AT(template_name)},
	{OPTION_TEXT, 0, "to", "DIR", "upload: into this directory of the project", AT(to)},
	{OPTION_END},
};

/* --- requests --- */

/* Adds a part to a path. One that is empty or leads elsewhere would make it another request. */
static int add_part(struct buf *target, const char *part, const char *what, struct err *err)
{
	if (!part[0] || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
		return err_set(err, ERR_INVALID, "\"%s\" is no %s", part, what);
	buf_append_str(target, "/");
	query_escape(target, part);
	return 0;
}

/* PROJECTS/{project}{what}; with /{file} unless that is NULL. */
static int begin_target(struct buf *target, const char *project, const char *what, const char *file,
	struct err *err)
{
	int r;

	buf_append_str(target, PROJECTS);
	r = add_part(target, project, "name of a project", err);
	buf_append_str(target, what);
	if (r == 0 && file)
		r = add_part(target, file, "path of a file", err);
	return r;
}

static int end_target(struct buf *target, char **ret, struct err *err)
{
	if (target->failed)
		return err_set(err, ERR_INVALID, "the path is too long");
	*ret = buf_take_str(target);
	return 0;
}

static int target_of(
	const char *project, const char *what, const char *file, char **ret, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	int r = begin_target(&target, project, what, file, err);

	return r < 0 ? r : end_target(&target, ret, err);
}

static int request(struct client *client, const char *method, const char *project, const char *what,
	const char *file, json_t **ret_answer, struct err *err)
{
	auto_free char *target = NULL;
	int r = target_of(project, what, file, &target, err);

	if (r < 0)
		return r;
	return client_json(
		client, &(struct client_call){.method = method, .path = target}, ret_answer, err);
}

/* --- ls, files --- */

static void print_projects(const json_t *projects)
{
	static const char *const heading[] = {"ID", "FILES", "SIZE", "AGE", "NAME"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *one;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)projects, i, one)
	{
		table_add(&table, "%s", cli_text(one, "id"));
		table_add_number(&table, json_object_get(one, "files"));
		table_add_size(&table, json_object_get(one, "bytes"));
		table_add_age(&table, cli_text(one, "created_at"));
		table_add(&table, "%s", cli_text(one, "name"));
	}
	table_print(&table, stdout);
}

static void print_files(const json_t *files)
{
	static const char *const heading[] = {"SIZE", "TYPE", "AGE", "PATH"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *one;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)files, i, one)
	{
		table_add_size(&table, json_object_get(one, "size"));
		table_add(&table, "%s", cli_text(one, "mime_type"));
		table_add_age(&table, cli_text(one, "created_at"));
		table_add(&table, "%s", cli_text(one, "path"));
	}
	table_print(&table, stdout);
}

/* What a target lists under a name: as JSON, as the `key` of each, or as a table. */
static int list(struct cli *cli, const struct project_values *v, const char *target,
	const char *name, const char *key, void (*print)(const json_t *list), struct err *err)
{
	json_auto_t *found = NULL;
	struct client *client;
	const json_t *one;
	size_t i;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch_all(client, target, name, &found, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(found);
	} else if (v->quiet) {
		json_array_foreach(found, i, one) cli_print("%s\n", cli_text(one, key));
	} else {
		print(found);
	}
	return 0;
}

static int run_ls(const struct command_call *call, struct err *err)
{
	return list(call->cli, call->values, PROJECTS, "projects", "name", print_projects, err);
}

static int run_files(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct project_values *v = call->values;
	char **argv = call->argv;
	auto_free char *target = NULL;
	int r = target_of(argv[0], "/files", NULL, &target, err);

	return r < 0 ? r : list(cli, v, target, "files", "path", print_files, err);
}

/* --- create, show --- */

static int make_body(
	const struct project_values *v, const char *name, json_t **ret_body, struct err *err)
{
	json_auto_t *body = json_pack("{s:s, s:{}}", "name", name, "defaults");
	json_t *defaults = json_object_get(body, "defaults"), *pairs;
	int r = body ? 0 : err_set(err, ERR_INVALID, "the name is not UTF-8 text");

	if (r == 0 && v->labels.count > 0) {
		r = create_spec_pairs(&v->labels, "--label", &pairs, err);
		if (r == 0)
			json_object_set_new(body, "labels", pairs);
	}
	if (r == 0 && v->env.count > 0) {
		r = create_spec_pairs(&v->env, "--env", &pairs, err);
		if (r == 0)
			json_object_set_new(defaults, "environment_config",
				json_pack("{s:o}", "env_vars", pairs));
	}
	if (v->template_name)
		json_object_set_new(defaults, "environment_type", json_string(v->template_name));
	if (r == 0)
		*ret_body = json_incref(body);
	return r;
}

static int run_create(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct project_values *v = call->values;
	char **argv = call->argv;
	json_auto_t *body = NULL, *answer = NULL;
	struct client *client;
	int r = make_body(v, argv[0], &body, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "POST", .path = PROJECTS, .body = body},
			&answer, err);
	if (r < 0)
		return r;
	cli_print_answer(cli, answer, cli_text(answer, "id"));
	return 0;
}

static int run_show(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	char **argv = call->argv;
	json_auto_t *project = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = request(client, "GET", argv[0], "", NULL, &project, err);
	if (r == 0)
		cli_print_json(project);
	return r;
}

/* --- upload --- */

static int put_file(struct client *client, const char *project, const char *path, int fd,
	bool is_executable, json_t **ret_answer, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	auto_free char *text = NULL;
	int r = begin_target(&target, project, "/files", NULL, err);

	query_add(&target, "path", path);
	query_add(&target, "executable", is_executable ? "true" : NULL);
	if (r == 0)
		r = end_target(&target, &text, err);
	return r < 0 ? r : transfer_send_fd(client, text, fd, ret_answer, err);
}

static int put_dir(struct client *client, const char *project, const char *below, const char *dir,
	json_t **ret_answer, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	auto_free char *text = NULL;
	int r = begin_target(&target, project, "/archive", NULL, err);

	query_add(&target, "path", below);
	if (r == 0)
		r = end_target(&target, &text, err);
	return r < 0 ? r : transfer_send_project(client, text, dir, ret_answer, err);
}

/* A file or directory goes under its own name; of one without ("dir/.") the content alone. */
static int upload(struct client *client, const char *project, const char *below, const char *local,
	json_t **ret_answer, struct err *err)
{
	auto_fd int fd = open(local, O_RDONLY | O_CLOEXEC);
	auto_free char *name = endpoint_basename(local);
	auto_free char *path = below && name ? endpoint_join(below, name)
			       : below	     ? mem_strdup(below)
			       : name	     ? mem_strdup(name)
					     : NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cli_file_error(errno, "open", local, err);
	if (S_ISDIR(st.st_mode))
		return put_dir(client, project, path, local, ret_answer, err);
	return put_file(client, project, path, fd, st.st_mode & S_IXUSR, ret_answer, err);
}

/* Of a file its path; of a directory how much it was. */
static void tell_upload(const char *local, const json_t *answer)
{
	json_int_t skipped = json_integer_value(json_object_get(answer, "skipped"));
	char size[FORMAT_SIZE_LEN];

	if (cli_text(answer, "path")[0]) {
		cli_print("%s\n", cli_text(answer, "path"));
		return;
	}
	format_size((uint64_t)json_integer_value(json_object_get(answer, "bytes")), size);
	cli_print("%s: %lld files, %s\n", local,
		(long long)json_integer_value(json_object_get(answer, "files")), size);
	if (skipped > 0)
		cli_note("%s: %lld symbolic links and the like were left out", local,
			(long long)skipped);
}

static int run_upload(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct project_values *v = call->values;
	int argc = call->argc;
	char **argv = call->argv;
	json_auto_t *answers = json_array();
	struct client *client;
	int r = cli_connect(cli, &client, err);

	for (int i = 1; i < argc && r == 0; i++) {
		json_auto_t *answer = NULL;

		r = upload(client, argv[0], v->to, argv[i], &answer, err);
		if (r == 0 && cli_wants_json(cli))
			json_array_append(answers, answer);
		else if (r == 0)
			tell_upload(argv[i], answer);
	}
	if (r == 0 && cli_wants_json(cli))
		cli_print_json(answers);
	return r;
}

/* --- download --- */

/* A file, or all of them: a directory with the name of the project. */
static int run_download(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	char **argv = call->argv;
	const char *path = call->argc > 1 ? argv[1] : ".", *to = call->argc > 2 ? argv[2] : ".";
	bool is_all = strcmp(path, ".") == 0;
	auto_free char *target = NULL;
	struct client *client;
	int r = target_of(
		argv[0], is_all ? "/archive" : "/files", is_all ? NULL : path, &target, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r < 0)
		return r;
	return transfer_receive(client, target, is_all ? argv[0] : path, is_all, to, err);
}

/* --- rm --- */

static int remove_project(
	struct client *client, const struct project_values *v, const char *name, struct err *err)
{
	auto_free char *question = mem_printf("Remove the project %s with all its files?", name);
	int r = v->force ? 0 : question_ask(question, err);

	if (r == 0)
		r = request(client, "DELETE", name, "", NULL, NULL, err);
	if (r == 0)
		cli_print("%s\n", name);
	return r;
}

/* The project itself, or files of it. One that fails does not keep the others from being tried. */
static int run_rm(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct project_values *v = call->values;
	int argc = call->argc;
	char **argv = call->argv;
	struct client *client;
	int code = 0;
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	if (argc == 1)
		return remove_project(client, v, argv[0], err);
	for (int i = 1; i < argc; i++) {
		if (request(client, "DELETE", argv[0], "/files", argv[i], NULL, err) < 0) {
			cli_complain(err, argv[i]);
			code = cli_exit_code(err);
		} else {
			cli_print("%s\n", argv[i]);
		}
	}
	return code;
}

/* --- the command --- */

static const struct command_verb verbs[] = {
	{"create", "NAME", 1, 1, run_create},
	{"download", "NAME [PATH [TO]]", 1, 3, run_download},
	{"files", "NAME", 1, 1, run_files},
	{"ls", "", 0, 0, run_ls},
	{"rm", "NAME [PATH...]", 1, COMMAND_ANY, run_rm},
	{"show", "NAME", 1, 1, run_show},
	{"upload", "NAME FILE...", 2, COMMAND_ANY, run_upload},
	{0},
};

const struct command cmd_project = {
	.name = "project",
	.operands = "ls|create|show|files|upload|download|rm [NAME] [FILE...]",
	.summary = "keep files that sandboxes see",
	.details =
		"A project is a set of files, which its sandboxes see read-only in\n"
		"/workspace/project_files, new ones at once. upload takes files and directories;\n"
		"DIR/. is the content alone. download writes a file, or all of them without a "
		"path\n"
		"or with ., to a path, or with - to standard output. rm NAME removes the project, "
		"rm NAME PATH... files of it.\n\n"
		"  sandlot project create shop\n"
		"  sandlot project upload shop ./my-app/. README.md\n"
		"  sandlot create --project shop\n"
		"  sandlot project download shop README.md -\n"
		"  sandlot project download shop\n"
		"  sandlot project rm shop README.md\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct project_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_FILES,
	.verbs = verbs,
};
