/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "cli/build_spec.h"
#include "cli/command.h"
#include "cli/copy/transfer.h"
#include "cli/copy/tree.h"
#include "cli/create_spec.h"
#include "cli/remote/listing.h"
#include "cli/remote/query.h"
#include "cli/terminal/output/job_bars.h"
#include "cli/terminal/process/follow.h"
#include "cli/text/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPLATES  "/v1/templates"
#define ARCHIVE	   "application/x-tar"
#define MIB	   (1024.0 * 1024.0)
#define PATH_BYTES 4096
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@"

struct template_values {
	const char *tag;
	bool detach, no_cache, build_cache, dry_run, orphans, shared;
	const char *user, *workdir, *snapshot, *security, *skeleton;
	bool start_image, pinned;
	const char *ready_command;
	struct option_number ready_port, pool;
	struct option_list unset;
	struct create_spec spec; /* what templates have of it */
	struct build_spec source;
};

#define AT(member) offsetof(struct template_values, member)

static const struct option options[] = {
	{OPTION_TEXT, 0, "tag", "TAG", "import: which image of the archive",
		offsetof(struct template_values, tag)},
	{OPTION_TEXT, 0, "snapshot", "ID", "create: of a snapshot, by its whole id", AT(snapshot)},
	{OPTION_FLAG, 'd', "detach", NULL, "pull, build: do not wait until it is ready",
		offsetof(struct template_values, detach)},
	{OPTION_FLAG, 0, "shared", NULL,
		"pull, create, build DIR, import: for everybody (administrators)", AT(shared)},
	{OPTION_FLAG, 0, "no-cache", NULL, "create, build: take nothing that an earlier build made",
		offsetof(struct template_values, no_cache)},
	{OPTION_FLAG, 0, "build-cache", NULL, "prune: forget what steps of builds have made",
		AT(build_cache)},
	{OPTION_FLAG, 0, "dry-run", NULL, "prune: only show what would be removed", AT(dry_run)},
	{OPTION_FLAG, 0, "orphans", NULL,
		"prune: remove also layers that the database knows nothing of", AT(orphans)},
	{OPTION_TEXT, 0, "user", "USER", "pull, create, build DIR, update: who runs commands",
		AT(user)},
	{OPTION_TEXT, 0, "workdir", "DIR", "the same: where commands run", AT(workdir)},
	{OPTION_CHOICE, 0, "security", "PROFILE", "the same: strict, default or browser",
		AT(security), "strict default browser"},
	{OPTION_TEXT, 0, "skeleton", "DIR", "the same: new workspaces are copies of it",
		AT(skeleton)},
	{OPTION_FLAG, 0, "start-image", NULL,
		"the same: run the image's own program whenever a sandbox starts", AT(start_image)},
	{OPTION_FLAG, 0, "pinned", NULL,
		"the same: sandboxes keep their version until they are reset", AT(pinned)},
	{OPTION_TEXT, 0, "ready", "LINE", "the same: a sandbox is ready when this succeeds",
		AT(ready_command)},
	{OPTION_NUMBER, 0, "ready-port", "N", "the same: or when this port is listened on",
		AT(ready_port)},
	{OPTION_NUMBER, 0, "pool", "N", "the same: so many sandboxes wait for a create", AT(pool)},
	{OPTION_LIST, 0, "unset", "WHAT",
		"update: take away ready, network, start, ports, members, env, resources, user,\n"
		"workdir, security, skeleton, start-image, pinned or pool; may be repeated",
		AT(unset)},
	{OPTION_LIST, 0, "member", "ROLE=NAME",
		"the same: runs beside a sandbox, as of create; may be repeated", AT(spec.members)},
	{OPTION_LIST, 'e', "env", "K=V", "the same: environment; may be repeated", AT(spec.env)},
	{OPTION_LIST, 'p', "port", "N[:HOW]", "the same: preview this port; may be repeated",
		AT(spec.ports)},
	{OPTION_TEXT, 0, "start", "LINE", "the same: run this whenever a sandbox starts",
		AT(spec.start)},
	{OPTION_TEXT, 0, "cpu", "CORES", "the same: processor limit", AT(spec.cpu)},
	{OPTION_TEXT, 0, "memory", "SIZE", "the same: memory limit", AT(spec.memory)},
	{OPTION_TEXT, 0, "disk", "SIZE", "the same: disk limit", AT(spec.disk)},
	{OPTION_NUMBER, 0, "pids", "N", "the same: limit of processes", AT(spec.pids)},
	{OPTION_CHOICE, 0, "network", "MODE", "the same: none, allowlist or internet",
		AT(spec.network), "none allowlist internet"},
	{OPTION_LIST, 0, "allow", "NAME", "the same: what may be reached; may be repeated",
		AT(spec.allow)},
	{OPTION_END},
};

/* The members of a body that are defaults of sandboxes. */
static int options_body(const struct template_values *v, json_t **ret_body, struct err *err)
{
	int r = create_spec_body(&v->spec, ret_body, err);

	if (r < 0)
		return r;
	if (v->user)
		json_object_set_new(*ret_body, "user", json_string(v->user));
	if (v->workdir)
		json_object_set_new(*ret_body, "workdir", json_string(v->workdir));
	if (v->security)
		json_object_set_new(*ret_body, "security", json_string(v->security));
	if (v->skeleton)
		json_object_set_new(*ret_body, "skeleton", json_string(v->skeleton));
	if (v->start_image)
		json_object_set_new(*ret_body, "start_image", json_true());
	if (v->pinned)
		json_object_set_new(*ret_body, "pinned", json_true());
	if (v->ready_command)
		json_object_set_new(
			*ret_body, "ready", json_pack("{s:s}", "command", v->ready_command));
	else if (v->ready_port.is_set)
		json_object_set_new(*ret_body, "ready",
			json_pack("{s:I}", "port", (json_int_t)v->ready_port.value));
	if (v->pool.is_set)
		json_object_set_new(
			*ret_body, "pool", json_pack("{s:I}", "size", (json_int_t)v->pool.value));
	return 0;
}

/* A name, or the reference of an image, whose slashes and colons are escaped. */
static int path_of(const char *name, const char *rest, char **ret_path, struct err *err)
{
	struct buf path = BUF_INIT(PATH_BYTES);

	if (!name[0] || name[strspn(name, NAME_BYTES)])
		return err_set(err, ERR_INVALID,
			"%.64s is neither the name of a template nor that of an image", name);
	buf_printf(&path, TEMPLATES "/");
	query_escape(&path, name);
	buf_printf(&path, "%s", rest);
	if (path.failed) {
		buf_fini(&path);
		return err_set(err, ERR_INVALID, "%.64s... is too long for a name", name);
	}
	*ret_path = mem_printf("%.*s", (int)path.len, (const char *)path.data);
	buf_fini(&path);
	return 0;
}

static int show_answer(struct cli *cli, const json_t *answer)
{
	const char *name = cli_text(answer, "name"), *status = cli_text(answer, "status");

	if (cli_wants_json(cli))
		cli_print_json(answer);
	else if (strcmp(status, "ready") == 0)
		cli_note("%s is ready, version %lld: sandlot run -t %s -- COMMAND", name,
			(long long)json_integer_value(json_object_get(answer, "version")), name);
	else
		cli_note("%s is %s: sandlot template log %s", name, status, name);
	return 0;
}

/* Waits for the build of a template, unless it is there, and shows it. One that failed already says why. */
static int await(struct cli *cli, struct client *client, const struct template_values *v,
	const json_t *answer, struct err *err)
{
	auto_free char *path = NULL;
	json_auto_t *template = NULL;
	int r;

	if (v->detach || strcmp(cli_text(answer, "status"), "ready") == 0)
		return show_answer(cli, answer);
	r = path_of(cli_text(answer, "name"), "", &path, err);
	if (r == 0)
		r = job_bars_wait(client, cli_text(answer, "job"), err);
	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = path},
			&template, err);
	return r < 0 ? r : show_answer(cli, template);
}

static void set_flags(const struct template_values *v, json_t *body)
{
	if (v->no_cache)
		json_object_set_new(body, "no_cache", json_true());
	if (v->shared)
		json_object_set_new(body, "shared", json_true());
}

static int pull(struct cli *cli, const struct template_values *v, const char *name,
	const char *image, struct err *err)
{
	json_auto_t *body = NULL, *answer = NULL;
	struct client *client;
	int r = options_body(v, &body, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r < 0)
		return r;
	json_object_set_new(body, "name", json_string(name));
	json_object_set_new(body, "image", json_string(image));
	set_flags(v, body);
	r = client_json(client,
		&(struct client_call){.method = "POST", .path = TEMPLATES, .body = body}, &answer,
		err);
	return r < 0 ? r : await(cli, client, v, answer, err);
}

static int build(
	struct cli *cli, const struct template_values *v, const char *name, struct err *err)
{
	json_auto_t *body = json_pack("{s:b}", "no_cache", v->no_cache);
	json_auto_t *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = path_of(name, "/build", &path, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "POST", .path = path, .body = body},
			&answer, err);
	return r < 0 ? r : await(cli, client, v, answer, err);
}

/* What a field is that says nothing. */
static int add_unset(const struct option_list *list, json_t *body, struct err *err)
{
	static const struct {
		const char *what, *field, *value;
	} rows[] = {
		{"ready", "ready", "null"},
		{"network", "network", "null"},
		{"start", "start", "[]"},
		{"ports", "ports", "[]"},
		{"members", "members", "[]"},
		{"env", "env", "{}"},
		{"resources", "resources", "{}"},
		{"user", "user", "\"\""},
		{"workdir", "workdir", "\"\""},
		{"security", "security", "\"default\""},
		{"skeleton", "skeleton", "\"\""},
		{"start-image", "start_image", "false"},
		{"pinned", "pinned", "false"},
		{"pool", "pool", "{\"size\": 0}"},
	};

	for (size_t i = 0; i < list->count; i++) {
		size_t at = 0;

		while (at < array_len(rows) && strcmp(rows[at].what, list->items[i]) != 0)
			at++;
		if (at == array_len(rows))
			return err_explain(err, ERR_INVALID, NULL, "see sandlot template --help",
				"--unset takes the name of what update sets, not %.40s",
				list->items[i]);
		if (json_object_get(body, rows[at].field))
			return err_set(err, ERR_INVALID, "%s cannot be set and unset at once",
				rows[at].what);
		json_object_set_new(
			body, rows[at].field, json_loads(rows[at].value, JSON_DECODE_ANY, NULL));
	}
	return 0;
}

static int update(
	struct cli *cli, const struct template_values *v, const char *name, struct err *err)
{
	json_auto_t *body = NULL, *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r;

	if ((r = options_body(v, &body, err)) < 0 || (r = add_unset(&v->unset, body, err)) < 0 ||
		(r = path_of(name, "", &path, err)) < 0 || (r = cli_connect(cli, &client, err)) < 0)
		return r;
	r = client_json(client,
		&(struct client_call){.method = "PATCH", .path = path, .body = body}, &answer, err);
	return r < 0 ? r : show_answer(cli, answer);
}

/* Sends a source; shows the log of its build as it comes, and the template. */
static int make(struct cli *cli, const struct template_values *v, json_t *body, struct err *err)
{
	json_auto_t *answer = NULL, *job = NULL, *template = NULL;
	auto_free char *path = NULL;
	struct client *client;
	struct follow follow = {0};
	int r = cli_connect(cli, &client, err);

	set_flags(v, body);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "POST", .path = TEMPLATES, .body = body},
			&answer, err);
	if (r < 0)
		return r;
	follow.job = json_string_value(json_object_get(answer, "job"));
	if (v->detach || !follow.job)
		return show_answer(cli, answer);
	r = path_of(cli_text(answer, "name"), "", &path, err);
	if (r == 0)
		r = follow_run(client, &follow, &job, err);
	if (r >= 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = path},
			&template, err);
	if (r < 0)
		return r;
	if (strcmp(cli_text(template, "status"), "ready") != 0) {
		const char *remedy = cli_text(json_object_get(job, "error"), "remediation");

		return err_explain(err, ERR_UNPROCESSABLE, NULL, remedy[0] ? remedy : NULL,
			"%s is not built: %s", cli_text(template, "name"),
			cli_text(template, "error"));
	}
	/* The last line of the log says that it is ready. */
	if (cli_wants_json(cli))
		cli_print_json(template);
	else
		cli_note("to use it: sandlot run -t %s -- COMMAND", cli_text(template, "name"));
	return 0;
}

static int create_of_snapshot(
	struct cli *cli, const struct template_values *v, const char *name, struct err *err)
{
	json_auto_t *body = NULL;
	int r = options_body(v, &body, err);

	if (r < 0)
		return r;
	json_object_set_new(body, "name", json_string(name));
	json_object_set_new(body, "snapshot", json_string(v->snapshot));
	return make(cli, v, body, err);
}

static int create(
	struct cli *cli, const struct template_values *v, const char *name, struct err *err)
{
	struct build_spec source = v->source;
	json_auto_t *body = NULL, *recipe = NULL;
	int r;

	if (v->snapshot)
		return create_of_snapshot(cli, v, name, err);
	/* Its steps see the variables too. */
	source.env = v->spec.env;
	r = options_body(v, &body, err);
	if (r == 0)
		r = build_spec_recipe(&source, name, &recipe, err);
	if (r < 0)
		return r;
	json_object_del(body, "env");
	json_object_update(body, recipe);
	return make(cli, v, body, err);
}

/* Sends the files of a directory, and notes in a body what they are named by. */
static int send_files(struct cli *cli, const char *name, const char *dir, char *ignored,
	json_t *body, struct err *err)
{
	struct client_source source = {.read = tree_sender_read, .type = ARCHIVE, .size = -1};
	struct tree_sender *sender;
	json_auto_t *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = path_of(name, "/files", &path, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = build_spec_open_tree(dir, ignored, &sender, err);
	if (r < 0)
		return r;
	source.arg = sender;
	cli_note("sending the files of %s", dir);
	r = client_json(client,
		&(struct client_call){.method = "PUT", .path = path, .source = &source}, &answer,
		err);
	tree_sender_free(sender);
	if (r == 0)
		json_object_set(body, "files_digest", json_object_get(answer, "files_digest"));
	return r;
}

static int build_dockerfile(struct cli *cli, const struct template_values *v, const char *name,
	const char *dir, struct err *err)
{
	json_auto_t *body = NULL, *dockerfile = NULL;
	auto_free char *ignored = NULL;
	int r = options_body(v, &body, err);

	if (r == 0)
		r = build_spec_dockerfile(&v->source, name, dir, &dockerfile, &ignored, err);
	if (r == 0 && ignored)
		r = send_files(cli, name, dir, ignored, dockerfile, err);
	if (r < 0)
		return r;
	json_object_update(body, dockerfile);
	return make(cli, v, body, err);
}

static int clear_cache(struct cli *cli, struct err *err)
{
	json_auto_t *answer = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "DELETE", .path = "/v1/build-cache"},
			&answer, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		cli_note("%lld steps are forgotten",
			(long long)json_integer_value(json_object_get(answer, "removed")));
	return 0;
}

/* --- log, cancel --- */

static int show_log(struct cli *cli, const char *name, struct err *err)
{
	json_auto_t *template = NULL, *job = NULL;
	auto_free char *path = NULL;
	struct client *client;
	struct follow follow = {0};
	int r = path_of(name, "", &path, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = path},
			&template, err);
	if (r < 0)
		return r;
	follow.job = json_string_value(json_object_get(template, "job"));
	if (!follow.job)
		return err_explain(err, ERR_NOT_FOUND, "build_not_found",
			"\"sandlot job ls\" shows builds that failed, \"sandlot job log ID\" what "
			"they said",
			"%s was not made by a build", name);
	return follow_run(client, &follow, &job, err);
}

static int cancel(struct cli *cli, const char *name, struct err *err)
{
	json_auto_t *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = path_of(name, "/cancel", &path, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "POST", .path = path},
			&answer, err);
	return r < 0 ? r : show_answer(cli, answer);
}

/* --- import --- */

static ssize_t read_file(void *arg, void *data, size_t size, struct err *err)
{
	ssize_t n = read(*(int *)arg, data, size);

	return n < 0 ? err_sys(err, "read the archive") : n;
}

/* A file, or a directory, which is sent as a tar. */
static int open_archive(const char *path, int *ret_fd, struct tree_sender **ret_sender,
	struct client_source *source, struct err *err)
{
	auto_fd int fd =
		strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_explain(err, ERR_NOT_FOUND, NULL, NULL, "cannot open %s: %s", path,
			strerror(errno));
	*source = (struct client_source){.read = read_file, .type = ARCHIVE, .size = -1};
	if (S_ISDIR(st.st_mode)) {
		if (faccessat(fd, "index.json", R_OK, 0) < 0)
			return err_explain(err, ERR_INVALID, NULL,
				"name an OCI layout, as umoci and `skopeo copy ... oci:DIR` write "
				"it",
				"%s is no image: it has no index.json", path);
		source->read = tree_sender_read;
		return tree_sender_new(path, ret_sender, err);
	}
	if (S_ISREG(st.st_mode))
		source->size = st.st_size;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int import(struct cli *cli, const struct template_values *v, const char *name,
	const char *path, struct err *err)
{
	auto_free char *target = NULL,
		       *query = mem_printf("/archive?shared=%s%s%s", v->shared ? "true" : "false",
			       v->tag ? "&tag=" : "", v->tag ? v->tag : "");
	json_auto_t *answer = NULL;
	struct tree_sender *sender = NULL;
	struct client_source source;
	struct client *client;
	auto_fd int fd = -1;
	int r;

	if (v->tag && v->tag[strspn(v->tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789._-/:")])
		return err_set(err, ERR_INVALID, "%.64s is no tag of an image", v->tag);
	if ((r = path_of(name, query, &target, err)) < 0 ||
		(r = open_archive(path, &fd, &sender, &source, err)) < 0)
		return r;
	source.arg = sender ? (void *)sender : &fd;
	r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "PUT", .path = target, .source = &source},
			&answer, err);
	if (sender)
		tree_sender_free(sender);
	return r < 0 ? r : show_answer(cli, answer);
}

/* --- export --- */

static int export(struct cli *cli, const char *name, const char *path, struct err *err)
{
	auto_free char *source = NULL, *file = mem_printf("%s.tar", name);
	struct client *client;
	int r = path_of(name, "/archive", &source, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	return r < 0 ? r : transfer_receive(client, source, file, false, path, err);
}

/* --- ls, show, rm --- */

/* What is not made yet has neither. */
static void add_version(struct table *table, const json_t *template)
{
	json_int_t version = json_integer_value(json_object_get(template, "version"));

	if (version > 0)
		table_add(table, "%lld", (long long)version);
	else
		table_add(table, "%s", "");
}

static void add_disk(struct table *table, const json_t *template)
{
	json_int_t bytes = json_integer_value(json_object_get(template, "disk_bytes"));

	if (bytes > 0)
		table_add(table, "%.1f MiB", (double)bytes / MIB);
	else
		table_add(table, "%s", "");
}

static void print_table(const json_t *templates)
{
	static const char *const heading[] = {"NAME", "VERSION", "STATUS", "SIZE", "IMAGE"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *template;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)templates, i, template)
	{
		const char *image = json_string_value(json_object_get(template, "image"));

		table_add(&table, "%s", cli_text(template, "name"));
		add_version(&table, template);
		table_add(&table, "%s", cli_text(template, "status"));
		add_disk(&table, template);
		table_add(&table, "%s", image ? image : cli_text(template, "source"));
	}
	table_print(&table, stdout);
}

static int list(struct cli *cli, struct err *err)
{
	json_auto_t *templates = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch_all(client, TEMPLATES, "templates", &templates, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(templates);
	else
		print_table(templates);
	return 0;
}

static int show(struct cli *cli, const char *name, struct err *err)
{
	json_auto_t *template = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = path_of(name, "", &path, err);

	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = path},
			&template, err);
	if (r == 0)
		cli_print_json(template);
	return r;
}

static int remove_one(struct client *client, const char *name, struct err *err)
{
	auto_free char *path = NULL;
	int r = path_of(name, "", &path, err);

	return r < 0 ? r
		     : client_json(client, &(struct client_call){.method = "DELETE", .path = path},
			       NULL, err);
}

/* One that fails does not keep the others from being tried; the exit code tells. */
static int remove_all(struct cli *cli, int count, char **names, struct err *err)
{
	struct client *client;
	int code = 0;
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	for (int i = 0; i < count; i++) {
		if (remove_one(client, names[i], err) < 0) {
			cli_complain(err, names[i]);
			code = cli_exit_code(err);
		} else {
			puts(names[i]);
		}
	}
	return code;
}

/* --- prune --- */

static void print_pruned(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "removed"), *one;
	bool is_dry = json_is_true(json_object_get(answer, "dry_run"));
	json_int_t layers = json_integer_value(json_object_get(answer, "layers"));
	size_t i;

	json_array_foreach(list, i, one)
	{
		/* A stack is a handful of links. */
		if (strcmp(cli_text(one, "kind"), "layer") == 0)
			printf("%s\t%.1f MiB%s\n", cli_text(one, "name"),
				(double)json_integer_value(json_object_get(one, "bytes")) / MIB,
				json_is_true(json_object_get(one, "orphan")) ? "\torphan" : "");
	}
	cli_note("%lld layer%s %s, %.1f MiB", (long long)layers, layers == 1 ? "" : "s",
		is_dry ? "would be removed" : "removed",
		(double)json_integer_value(json_object_get(answer, "bytes")) / MIB);
}

static int prune(struct cli *cli, const struct template_values *v, struct err *err)
{
	json_auto_t *body = json_pack("{s:b, s:b}", "dry_run", v->dry_run, "orphans", v->orphans);
	json_auto_t *answer = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = client_json(client,
			&(struct client_call){
				.method = "POST", .path = TEMPLATES "/prune", .body = body},
			&answer, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		print_pruned(answer);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct template_values *v = values;

	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return list(cli, err);
	if (strcmp(argv[0], "show") == 0 && argc == 2)
		return show(cli, argv[1], err);
	if (strcmp(argv[0], "pull") == 0 && argc == 3)
		return pull(cli, values, argv[1], argv[2], err);
	if (strcmp(argv[0], "create") == 0 && argc == 2)
		return create(cli, values, argv[1], err);
	if (strcmp(argv[0], "build") == 0 && argc == 3)
		return build_dockerfile(cli, values, argv[1], argv[2], err);
	if (strcmp(argv[0], "build") == 0 && argc == 2 && v->source.dockerfile)
		return build_dockerfile(cli, values, argv[1], ".", err);
	if (strcmp(argv[0], "build") == 0 && argc == 2)
		return build(cli, values, argv[1], err);
	if (strcmp(argv[0], "update") == 0 && argc == 2)
		return update(cli, values, argv[1], err);
	if (strcmp(argv[0], "log") == 0 && argc == 2)
		return show_log(cli, argv[1], err);
	if (strcmp(argv[0], "cancel") == 0 && argc == 2)
		return cancel(cli, argv[1], err);
	if (strcmp(argv[0], "import") == 0 && argc == 3)
		return import(cli, values, argv[1], argv[2], err);
	if (strcmp(argv[0], "prune") == 0 && argc == 1)
		return v->build_cache ? clear_cache(cli, err) : prune(cli, values, err);
	if (strcmp(argv[0], "export") == 0 && argc == 3)
		return export(cli, argv[1], argv[2], err);
	if (strcmp(argv[0], "rm") == 0 && argc >= 2)
		return remove_all(cli, argc - 1, argv + 1, err);
	return err_explain(err, ERR_INVALID, NULL, "see \"sandlot template --help\"",
		"template can do ls, show NAME, pull NAME IMAGE, import NAME FILE, "
		"export NAME FILE, create NAME, build NAME [DIR], update NAME, log NAME, "
		"cancel NAME, prune, and rm NAME...");
}

const struct command cmd_template = {
	.name = "template",
	.operands = "ls|show|pull|import|export|create|build|update|log|cancel|prune|rm [NAME "
		    "[IMAGE|FILE|DIR]]",
	.summary = "what sandboxes start from: the host's files, or images",
	.details =
		"pull fetches an image from its registry and keeps it under a name; import takes\n"
		"one from a file: an OCI layout (a directory, or as a tar), or what docker save\n"
		"writes (- is standard input), and export writes such a layout. An image can also "
		"be used\n"
		"without a name; it is fetched when a sandbox first needs it. create makes one of\n"
		"another with packages, files and commands, or of a snapshot; build with a "
		"directory or -f does so\n"
		"by the Dockerfile there, without one it makes a template again of what it was\n"
		"made of. They wait and show how far it is; the server goes on without us.\n"
		"update changes the defaults that a template gives its sandboxes. An image that "
		"was\n"
		"used without a name has its reference in the place of one. With --shared an\n"
		"administrator makes one that everybody uses and administrators change.\n"
		"prune, for administrators, removes the layers of images that no template,\n"
		"sandbox, snapshot or build uses, and says what that gave back.\n\n"
		"  sandlot template pull py python:3.12-slim\n"
		"  docker save app:1 | sandlot template import app -\n"
		"  sandlot run -t py -- python3 --version\n"
		"  sandlot run -t python:3.12-slim -- python3 --version\n"
		"  sandlot template update py --memory 2Gi -e MODE=test\n"
		"  sandlot template build py\n"
		"  sandlot template create tools --from py --apt git,curl --run 'git --version'\n"
		"  sandlot template create deb --bootstrap bookworm --apt git\n"
		"  sandlot template build app ./app\n"
		"  sandlot template log py\n"
		"  sandlot template ls\n"
		"  sandlot template rm app\n"
		"  sandlot template rm python:3.12-slim\n"
		"  sandlot template prune --dry-run\n",
	.tables = {{options, 0}, {build_spec_options, offsetof(struct template_values, source)}},
	.values_size = sizeof(struct template_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
