/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: is this host fit, is the daemon well? One line a check; for a problem also why it matters
 * and the command that mends it.
 */
#include "base/fd.h"
#include "cli/command.h"
#include "cli/host_check.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 5000

struct doctor_values {
	bool host_only;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "host", NULL, "look at the host alone, not at the daemon",
		offsetof(struct doctor_values, host_only)},
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
	printf("%-4s %s: %s\n", level_names[f->level], name, f->fact);
	if (f->why)
		printf("       why:  %s\n", f->why);
	if (f->mend[0])
		printf("       mend: %s\n", f->mend);
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
		.method = "GET", .path = "/v1/sandboxes?limit=1", .timeout_ms = TIMEOUT_MS};
	struct err err = {0};

	if (client_json(client, &call, NULL, &err) < 0)
		from_err(f, "every call needs a token, also on this machine", &err);
	else
		finding_ok(f, "accepted");
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
	check_text(client, "/readyz", "no sandbox can be created now", &f);
	add(report, "ready", &f);
	check_token(client, &f);
	add(report, "token", &f);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct doctor_values *v = values;
	json_auto_t *checks = json_array();
	struct report report = {.as_json = cli_wants_json(cli), .checks = checks};
	int r = check_host(&report, err);

	(void)argc, (void)argv;
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
		"the command that mends it. Exits with 1 if anything failed.\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct doctor_values),
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
