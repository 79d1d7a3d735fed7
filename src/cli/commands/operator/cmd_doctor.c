/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: is this host fit, is the daemon well? One line a check; for a problem also why it matters
 * and the command that mends it.
 */
#include "base/fd.h"
#include "base/format.h"
#include "cli/command.h"
#include "doctor/host_check.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 5000

struct doctor_values {
	bool host_only;
	bool is_remote;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "host", NULL, "look at the host alone, not at the daemon",
		offsetof(struct doctor_values, host_only)},
	{OPTION_FLAG, 0, "remote", NULL, "ask the daemon about its host, which is another machine",
		offsetof(struct doctor_values, is_remote)},
	{OPTION_END},
};

static const char *const level_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_WARN] = "warn",
	[FINDING_FAIL] = "FAIL",
};

struct report {
	bool as_json;
	bool has_failed;
	json_t *checks;
};

static void add(struct report *report, const char *name, const struct finding *f)
{
	if (f->level == FINDING_FAIL)
		report->has_failed = true;
	if (report->as_json) {
		json_array_append_new(report->checks,
			json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "name", name, "status",
				level_names[f->level], "fact", f->fact, "why", f->why, "mend",
				f->mend[0] ? f->mend : NULL));
		return;
	}
	cli_print("%-4s %s: %s\n", level_names[f->level], name, f->fact);
	if (f->why)
		cli_print("       why:  %s\n", f->why);
	if (f->mend[0])
		cli_print("       mend: %s\n", f->mend);
	fflush(stdout);
}

static int check_host(struct report *report, struct err *err)
{
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct host host;

	if (root_fd < 0)
		return err_sys(err, "open /");
	host_check_init(&host, root_fd);
	for (size_t i = 0; i < host_check_count; i++) {
		struct finding f = {0};

		host_checks[i].look(&host, &f);
		add(report, host_checks[i].name, &f);
	}
	return 0;
}

static int add_remote(struct report *report, const json_t *check, struct err *err)
{
	const char *status = json_string_value(json_object_get(check, "status"));
	const char *why = json_string_value(json_object_get(check, "why"));
	const char *mend = json_string_value(json_object_get(check, "mend"));
	struct finding f = {0};

	if (!status)
		return err_set(err, ERR_UNAVAILABLE, "the daemon's report has no status");
	if (strcmp(status, "ok") == 0)
		finding_ok(&f, "%s", cli_text(check, "fact"));
	else
		finding_problem(&f, strcmp(status, "fail") == 0 ? FINDING_FAIL : FINDING_WARN,
			why ? why : "", mend ? mend : "", "%s", cli_text(check, "fact"));
	add(report, cli_text(check, "name"), &f);
	return 0;
}

/* The host of a daemon that is elsewhere, as that sees it. */
static int check_remote(struct cli *cli, struct report *report, struct err *err)
{
	json_auto_t *document = NULL;
	const json_t *check;
	struct client *client;
	size_t i;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = client_json(client,
			&(struct client_call){
				.method = "GET", .path = "/v1/doctor", .timeout_ms = TIMEOUT_MS},
			&document, err);
	json_array_foreach(json_object_get(document, "checks"), i, check)
	{
		if (r == 0)
			r = add_remote(report, check, err);
	}
	return r;
}

static void from_err(struct finding *f, const char *why, const struct err *err)
{
	finding_problem(f, FINDING_FAIL, why, err->remedy, "%s", err->message);
}

/* GET of a plain text; the finding tells what came. False if there is no use in asking further. */
static bool check_text(struct client *client, const char *path, const char *why, struct finding *f)
{
	struct client_call call = {
		.method = "GET", .path = path, .accept = "text/plain", .timeout_ms = TIMEOUT_MS};
	struct err err = {0};
	char text[128];
	ssize_t n;

	if (client_open(client, &call, &err) < 0) {
		from_err(f, why, &err);
		return strcmp(err.code, "unreachable") != 0;
	}
	n = client_read(client, text, sizeof(text) - 1, &err);
	client_close(client);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	finding_ok(f, "%s at %s", text, client_url(client));
	return true;
}

static void check_token(struct client *client, struct finding *f)
{
	struct client_call call = {
		.method = "GET", .path = "/v1/version", .timeout_ms = TIMEOUT_MS};
	struct err err = {0};

	/* A call that needs no sandboxes: it fails for nothing but the token. */
	if (client_json(client, &call, NULL, &err) < 0)
		from_err(f, "every call needs a token, also on this machine", &err);
	else
		finding_ok(f, "accepted");
}

/* Whether it was left out because the token is no administrator's. */
static bool ask(struct client *client, const char *path, const char *why, json_t **ret_document,
	struct finding *f)
{
	struct client_call call = {.method = "GET", .path = path, .timeout_ms = TIMEOUT_MS};
	struct err err = {0};

	if (client_json(client, &call, ret_document, &err) == 0)
		return true;
	if (err.kind == ERR_DENIED)
		finding_ok(f, "only an administrator may ask");
	else
		from_err(f, why, &err);
	return false;
}

/* The driver that the daemon uses, and what that cannot do. */
static void check_driver(struct client *client, struct finding *f)
{
	json_auto_t *document = NULL;
	const json_t *driver;
	json_t *can;
	const char *capability;
	char lacks[160] = "";
	size_t i, len = 0;

	if (!ask(client, "/v1/drivers", "it runs the sandboxes", &document, f))
		return;
	json_array_foreach(json_object_get(document, "drivers"), i, driver)
	{
		if (!json_is_true(json_object_get(driver, "used")))
			continue;
		json_object_foreach(json_object_get(driver, "capabilities"), capability, can)
		{
			if (!json_is_true(can))
				len = format_append(lacks, sizeof(lacks), len, "%s%.32s",
					len > 0 ? ", " : ", without ", capability);
		}
		finding_ok(f, "%.32s%s", cli_text(driver, "name"), lacks);
		return;
	}
	finding_problem(f, FINDING_WARN, "it runs the sandboxes", "", "the daemon names none");
}

static void check_orphans(struct client *client, struct finding *f)
{
	static const char why[] = "files without a row in the database are nobody's";
	json_auto_t *document = NULL;
	const json_t *orphans;

	if (!ask(client, "/v1/orphans?limit=1000", why, &document, f))
		return;
	orphans = json_object_get(document, "orphans");
	if (json_array_size(orphans) == 0)
		finding_ok(f, "none");
	else
		finding_problem(f, FINDING_WARN, why,
			"sandlot ls --orphans; then sandlot adopt ID, or sandlot purge --orphan ID",
			"%zu%s, the first is %s", json_array_size(orphans),
			json_is_string(json_object_get(document, "next_cursor")) ? " and more" : "",
			cli_text(json_array_get(orphans, 0), "id"));
}

static void check_backups(struct client *client, struct finding *f)
{
	static const char why[] = "a database that is damaged or lost is brought back from them";
	json_auto_t *document = NULL;
	const char *failure;
	const json_t *backups;
	size_t count;

	if (!ask(client, "/v1/backups", why, &document, f))
		return;
	backups = json_object_get(document, "backups");
	count = json_array_size(backups);
	failure = json_string_value(json_object_get(document, "failure"));
	if (failure)
		finding_problem(f, FINDING_WARN, why, "free space below the data directory",
			"%zu, and the last failed: %s", count, failure);
	else if (count == 0)
		finding_ok(f, "none yet");
	else
		finding_ok(f, "%zu, the last of %s", count,
			cli_text(json_array_get(backups, count - 1), "written_at"));
}

/* A sandbox that has an error says it itself; here are those of the token's owner that have one. */
static void check_sandboxes(struct client *client, struct finding *f)
{
	struct client_call call = {
		.method = "GET", .path = "/v1/sandboxes?limit=1000", .timeout_ms = TIMEOUT_MS};
	json_auto_t *document = NULL;
	const json_t *sandbox, *first = NULL;
	struct err err = {0};
	size_t i, failed = 0;

	if (client_json(client, &call, &document, &err) < 0) {
		from_err(f, "sandboxes that have an error are told here", &err);
		return;
	}
	json_array_foreach(json_object_get(document, "sandboxes"), i, sandbox)
	{
		if (!json_is_string(json_object_get(sandbox, "error_message")))
			continue;
		first = first ? first : sandbox;
		failed++;
	}
	if (failed == 0)
		finding_ok(f, "none has an error");
	else
		finding_problem(f, FINDING_WARN, "they can be used in part, or not at all", "",
			"%zu with an error: %s: %.160s", failed,
			json_string_value(json_object_get(first, "id")),
			json_string_value(json_object_get(first, "error_message")));
}

/* A daemon that creates none, because the disk is full, still tells of those that there are. */
static bool serves_sandboxes(struct client *client)
{
	struct client_call call = {
		.method = "GET", .path = "/v1/sandboxes?limit=1", .timeout_ms = TIMEOUT_MS};
	struct err ignored;

	return client_json(client, &call, NULL, &ignored) == 0;
}

static int check_daemon(struct cli *cli, struct report *report, struct err *err)
{
	struct finding f = {0};
	struct client *client;
	bool is_there;
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	is_there = check_text(client, "/healthz", "nothing works without it", &f);
	add(report, "daemon", &f);
	if (!is_there)
		return 0;
	f = (struct finding){0};
	check_text(client, "/readyz", "no sandbox can be created now", &f);
	add(report, "ready", &f);
	f = (struct finding){0};
	check_token(client, &f);
	add(report, "token", &f);
	if (f.level != FINDING_OK)
		return 0;
	f = (struct finding){0};
	check_backups(client, &f);
	add(report, "backups", &f);
	if (!serves_sandboxes(client))
		return 0;
	f = (struct finding){0};
	check_driver(client, &f);
	add(report, "driver", &f);
	f = (struct finding){0};
	check_orphans(client, &f);
	add(report, "orphans", &f);
	f = (struct finding){0};
	check_sandboxes(client, &f);
	add(report, "sandboxes", &f);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct doctor_values *v = values;
	json_auto_t *checks = json_array();
	struct report report = {.as_json = cli_wants_json(cli), .checks = checks};
	int r = v->is_remote ? check_remote(cli, &report, err) : check_host(&report, err);

	(void)argc, (void)argv;
	if (r == 0 && v->host_only && v->is_remote)
		r = err_set(
			err, ERR_INVALID, "--host is about this machine, --remote about another");
	if (r == 0 && !v->host_only)
		r = check_daemon(cli, &report, err);
	if (r < 0)
		return r;
	if (report.as_json) {
		json_auto_t *document =
			json_pack("{s:b, s:O}", "ok", !report.has_failed, "checks", checks);

		cli_print_json(document);
	}
	return report.has_failed ? 1 : 0;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "check the host and the daemon",
	.details =
		"One line a check: ok, warn or FAIL. A problem comes with why it matters and with\n"
		"the command that mends it. Exits with 1 if anything failed. With --remote the "
		"daemon\n"
		"looks at its own host: what has to be tried is as it was when it started.\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct doctor_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
