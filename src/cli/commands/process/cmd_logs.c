/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs: of one process byte for byte, of all of a sandbox as lines with the names of the processes, in the order of
 * their times. To follow several, each has a program of its own that carries its output: a connection that is lost
 * is made again for that one alone. They end with the one that looks for new processes.
 */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/query.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output/line_writer.h"
#include "cli/terminal/process/follow.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/text/human.h"
#include "cli/text/since.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLLOWED_MAX 256
#define LOOK_MS	     1000
#define NAME_MIN     6 /* columns of a name, so that most lines begin at the same one */

struct logs_values {
	bool is_daemon;
	bool all;
	bool follow;
	struct option_number from;
	const char *grep;
	bool ignore_case;
	const char *member;
	const char *since;
	struct option_number tail;
	bool timestamps;
};

#define AT(field) offsetof(struct logs_values, field)

static const struct option options[] = {
	{OPTION_FLAG, 'a', "all", NULL,
		"also of commands that somebody waited for, and of terminals", AT(all)},
	{OPTION_FLAG, 0, "daemon", NULL,
		"of sandlotd itself, as its systemd unit has it in the journal", AT(is_daemon)},
	{OPTION_FLAG, 'f', "follow", NULL, "go on until the process, or the sandbox, has ended",
		AT(follow)},
	{OPTION_NUMBER, 0, "from", "N", "of one process: leave the first N bytes out", AT(from)},
	{OPTION_TEXT, 'g', "grep", "TEXT",
		"only lines with this text, of all processes that are remembered", AT(grep)},
	{OPTION_FLAG, 'i', "ignore-case", NULL, "with --grep: A is a", AT(ignore_case)},
	OPTION_MEMBER(AT(member)),
	{OPTION_TEXT, 0, "since", "TIME",
		"only lines of the last 10m (say), or since 2026-01-02T03:04:05Z", AT(since)},
	{OPTION_NUMBER, 'n', "tail", "N", "only the last N lines of each process", AT(tail)},
	{OPTION_FLAG, 't', "timestamps", NULL, "show when each line came, in UTC", AT(timestamps)},
	{OPTION_END},
};

/* A process whose output is shown as lines: what is there, and then what comes. */
struct shown {
	struct process_ref ref;
	char *prefix; /* NULL: none */
	struct line_writer lines;
	uint64_t next;	/* where to go on */
	json_t *result; /* how it ended; NULL: it has not */
};

static void shown_init(struct shown *shown, const struct logs_values *v, int64_t since_ms)
{
	shown->next = v->from.value;
	shown->lines = (struct line_writer){.prefix = shown->prefix,
		.with_times = v->timestamps,
		.since_ms = since_ms,
		.tail = v->tail.is_set ? v->tail.value : 0,
		.holds = true};
}

static void shown_fini(struct shown *shown)
{
	line_writer_fini(&shown->lines);
	json_decref(shown->result);
	free(shown->prefix);
}

/* Reads what is there, which its writer holds. */
static int read_kept(
	struct client *client, struct shown *shown, const struct logs_values *v, struct err *err)
{
	struct follow follow = {.process = &shown->ref,
		.from = shown->next,
		.is_once = true,
		.lines = &shown->lines,
		.ret_next = &shown->next};
	int r = follow_run(client, &follow, &shown->result, err);

	/* Half a line is the last one, unless its rest may still come. */
	if (r == 0 && (!v->follow || shown->result))
		r = line_writer_flush(&shown->lines, err);
	return r;
}

/* Shows what comes. */
static int go_on(struct client *client, struct shown *shown, struct err *err)
{
	struct follow follow = {
		.process = &shown->ref, .from = shown->next, .lines = &shown->lines};
	int r = follow_run(client, &follow, &shown->result, err);

	return r < 0 ? r : line_writer_flush(&shown->lines, err);
}

static int show_lines(
	struct client *client, struct shown *shown, const struct logs_values *v, struct err *err)
{
	struct line_writer *lines = &shown->lines;
	int r = read_kept(client, shown, v, err);

	if (r == 0)
		r = line_writer_release(&lines, 1, err);
	return r == 0 && v->follow && !shown->result ? go_on(client, shown, err) : r;
}

static int show_one(struct client *client, char **argv, const struct logs_values *v,
	int64_t since_ms, struct err *err)
{
	auto_(shown_fini) struct shown shown = {0};
	struct follow follow = {
		.process = &shown.ref, .from = v->from.value, .is_once = !v->follow};
	int ignored;
	int r = process_ref_find(client, argv[0], argv[1], &shown.ref, err);

	if (r < 0)
		return r;
	shown_init(&shown, v, since_ms);
	r = v->tail.is_set || v->since || v->timestamps
		    ? show_lines(client, &shown, v, err)
		    : follow_run(client, &follow, &shown.result, err);
	return r == 0 && shown.result ? live_exec_report(shown.result, NULL, &ignored, err) : r;
}

/* --- all of a sandbox --- */

struct sandbox_logs {
	struct client *client;
	const struct logs_values *values;
	int64_t since_ms;
	char sandbox[RESOLVE_ID_LEN + 1];
	struct shown shown[FOLLOWED_MAX];
	size_t count;
	unsigned children;
};

static void sandbox_logs_free(struct sandbox_logs **logs)
{
	for (size_t i = 0; *logs && i < (*logs)->count; i++)
		shown_fini(&(*logs)->shown[i]);
	free(*logs);
}

/* "web    | ": the name of a start command, else that of the process. Nothing in it steers a terminal. */
static char *make_prefix(const json_t *process)
{
	const char *start = cli_text(process, "start");
	char *prefix = mem_printf("%-*s | ", NAME_MIN, start[0] ? start : cli_text(process, "id"));

	return prefix;
}

static bool is_shown(const struct sandbox_logs *logs, const char *name)
{
	for (size_t i = 0; i < logs->count; i++) {
		if (strcmp(logs->shown[i].ref.process, name) == 0)
			return true;
	}
	return false;
}

/*
 * Whether a process is one of those that are meant: who waited for a command, or sat at its terminal, has seen
 * what it printed.
 */
static bool is_meant(const struct sandbox_logs *logs, const json_t *process)
{
	bool runs_by_itself = json_is_true(json_object_get(process, "background")) &&
			      !json_is_true(json_object_get(process, "pty"));

	return process_ref_is_name(cli_text(process, "id")) &&
	       (logs->values->all || runs_by_itself);
}

/* Adds a process that was not seen yet. */
static int add_process(struct sandbox_logs *logs, const json_t *process, struct err *err)
{
	struct shown *shown = &logs->shown[logs->count];
	int r;

	snprintf(shown->ref.sandbox, sizeof(shown->ref.sandbox), "%s", logs->sandbox);
	r = process_ref_name(process, &shown->ref, err);
	if (r < 0)
		return r;
	logs->count++;
	shown->prefix = make_prefix(process);
	shown_init(shown, logs->values, logs->since_ms);
	return read_kept(logs->client, shown, logs->values, err);
}

/* In a child, which ends with us. */
static void follow_process(struct sandbox_logs *logs, struct shown *shown)
{
	pid_t parent = getpid(), pid;
	struct client *client;
	struct err err = {0};
	int r;

	fflush(NULL);
	pid = fork();
	if (pid > 0)
		logs->children++;
	if (pid != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	r = client_clone(logs->client, &client, &err);
	if (r == 0)
		r = go_on(client, shown, &err);
	if (r < 0 && r != -EPIPE && r != -EINTR)
		cli_note("%s: %s", shown->ref.process, err.message);
	_exit(r < 0);
}

static int fetch(struct sandbox_logs *logs, json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/processes?limit=1000", logs->sandbox);

	return listing_fetch_all(logs->client, path, "processes", ret, err);
}

/* Shows those that were not seen yet, and begins to follow them. */
static int look(struct sandbox_logs *logs, struct err *err)
{
	struct line_writer *writers[FOLLOWED_MAX];
	json_auto_t *processes = NULL;
	const json_t *process;
	size_t i, before = logs->count;
	int r = fetch(logs, &processes, err);

	json_array_foreach(processes, i, process)
	{
		if (r == 0 && logs->count < FOLLOWED_MAX && is_meant(logs, process) &&
			!is_shown(logs, cli_text(process, "id")))
			r = add_process(logs, process, err);
	}
	for (i = before; i < logs->count; i++)
		writers[i - before] = &logs->shown[i].lines;
	if (r == 0)
		r = line_writer_release(writers, logs->count - before, err);
	for (i = before; r == 0 && logs->values->follow && i < logs->count; i++) {
		if (!logs->shown[i].result)
			follow_process(logs, &logs->shown[i]);
	}
	return r;
}

static int follow_all(struct sandbox_logs *logs, struct err *err)
{
	struct interrupt *interrupt = client_interrupt(logs->client);
	int r = 0;

	while (r == 0) {
		json_auto_t *sandbox = NULL;
		bool is_up;

		r = look(logs, err);
		while (logs->children > 0 && waitpid(-1, NULL, WNOHANG) > 0)
			logs->children--;
		if (r == 0)
			r = resolve_get(logs->client, logs->sandbox, "", &sandbox, err);
		is_up = strcmp(cli_text(sandbox, "status"), "running") == 0 ||
			strcmp(cli_text(sandbox, "status"), "paused") == 0;
		if (r == 0 && !is_up && logs->children == 0)
			return 0;
		if (r == 0)
			r = interrupt_wait(interrupt, -1, 0, LOOK_MS, err);
	}
	return r;
}

static int show_all(struct client *client, const char *text, const struct logs_values *v,
	int64_t since_ms, struct err *err)
{
	auto_(sandbox_logs_free) struct sandbox_logs *logs = mem_new(sizeof(*logs));
	int r;

	logs->client = client;
	logs->values = v;
	logs->since_ms = since_ms;
	if (v->from.is_set)
		return err_set(err, ERR_INVALID, "--from counts the bytes of one process: name it");
	r = resolve_id(client, text, logs->sandbox, err);
	if (r < 0)
		return r;
	return v->follow ? follow_all(logs, err) : look(logs, err);
}

/* --- a search in all of them --- */

static void print_match(const json_t *match, bool with_time)
{
	cli_print("%s%s%-*s | %s\n", with_time ? cli_text(match, "at") : "", with_time ? " " : "",
		NAME_MIN, cli_text(match, "process"), cli_text(match, "line"));
}

static int search(struct cli *cli, struct client *client, int argc, char **argv,
	const struct logs_values *v, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(4096);
	auto_free char *path = NULL;
	struct process_ref ref;
	json_auto_t *found = NULL;
	const json_t *match;
	size_t i;
	int r = argc > 1 ? process_ref_find(client, argv[0], argv[1], &ref, err)
			 : resolve_id(client, argv[0], ref.sandbox, err);

	if (r < 0)
		return r;
	buf_printf(&target, "/v1/sandboxes/%s/output/search?limit=1000", ref.sandbox);
	query_add(&target, "q", v->grep);
	query_add(&target, "ignore_case", v->ignore_case ? "true" : NULL);
	query_add(&target, "process", argc > 1 ? ref.process : NULL);
	path = buf_take_str(&target);
	r = client_json(client, &(struct client_call){.method = "GET", .path = path}, &found, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(found);
		return 0;
	}
	json_array_foreach(json_object_get(found, "matches"), i, match)
		print_match(match, v->timestamps);
	if (json_is_true(json_object_get(found, "truncated")))
		cli_note("there may be more: only a part was looked at, or shown");
	return 0;
}

/* A search looks once at what is kept; what shows the output as it was written does not go with it. */
static int check_search(const struct logs_values *v, struct err *err)
{
	if (!v->grep && v->ignore_case)
		return err_set(err, ERR_INVALID, "--ignore-case goes with --grep");
	if (v->grep && (v->follow || v->from.is_set || v->tail.is_set || v->since || v->member))
		return err_set(
			err, ERR_INVALID, "--grep goes with --ignore-case and --timestamps alone");
	return 0;
}

/* The daemon writes to standard error, one object a line; with the unit that is the journal, which has a reader. */
static int show_daemon(const struct logs_values *v, struct err *err)
{
	char count[16] = "all";
	char *words[8] = {(char *)"journalctl", (char *)"--unit=sandlot", (char *)"--output=cat",
		(char *)"--no-pager", (char *)"--lines", count,
		v->follow ? (char *)"--follow" : NULL};

	if (v->tail.is_set)
		snprintf(count, sizeof(count), "%d", (int)v->tail.value);
	execvp(words[0], words);
	return err_explain(err, ERR_UNAVAILABLE, NULL,
		"without its systemd unit, sandlotd logs to its standard error: look where that "
		"goes",
		"journalctl cannot be run: %s", strerror(errno));
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct logs_values *v = values;
	struct client *client;
	int64_t since_ms = 0;
	int r = v->since ? since_parse(v->since, &since_ms, err) : 0;

	if (r < 0)
		return r;
	if (v->tail.is_set && (v->tail.value < 1 || v->tail.value > LINE_WRITER_TAIL_MAX))
		return err_set(
			err, ERR_INVALID, "--tail takes from 1 to %d lines", LINE_WRITER_TAIL_MAX);
	if (v->is_daemon && argc == 0)
		return show_daemon(v, err);
	if (v->is_daemon || argc == 0)
		return err_explain(err, ERR_INVALID, NULL, "see \"sandlot logs --help\"",
			"logs: a sandbox, or --daemon");
	r = check_search(v, err);
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r < 0)
		return r;
	client_mean_member(client, v->member);
	if (v->grep)
		return search(cli, client, argc, argv, v, err);
	return argc > 1 ? show_one(client, argv, v, since_ms, err)
			: show_all(client, argv[0], v, since_ms, err);
}

const struct command cmd_logs = {
	.name = "logs",
	.operands = "SANDBOX [PROCESS] | --daemon",
	.summary = "show what processes have printed",
	.details =
		"Of all start commands and background processes of a sandbox, as lines with their "
		"names,\n"
		"in the order of their times; or of one process byte for byte: its stdout on "
		"standard\n"
		"output, its stderr on standard error. What is\n"
		"no longer kept (the middle of more than 16 MiB) is marked on standard error, "
		"and so is\n"
		"why one ended, if more is known than its exit code. With -f a lost connection is "
		"made\n"
		"again and nothing is shown twice. The exit code is 0, however the process "
		"ended;\n"
		"\"sandlot wait\" has that.\n\n"
		"  sandlot logs -f --tail 20 01k9\n"
		"  sandlot logs -t --since 10m 01k9\n"
		"  sandlot logs -f 01k9 p7\n"
		"  sandlot logs -i --grep error 01k9\n"
		"  sandlot logs -f --member database 01k9\n"
		"  sandlot logs --daemon -f\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct logs_values),
	.min_operands = 0,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_PROCESSES,
	.run = run,
};
