/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/ready_check.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/engine.h"
#include "core/process/environment.h"
#include "core/process/process.h"
#include "core/process/process_state.h"

#include <errno.h>
#include <time.h>

/* One run of a sandbox that is not ready yet. */
struct ready_check {
	atomic_int
		refs; /* the list's, the thread's while it asks, and that of a command that runs */
	struct ready_check *next;
	struct sandbox *sandbox;
	uint64_t due_ms; /* when it is tried next, by the steady clock */
	uint64_t pause_ms, until_ms;
	bool is_asked; /* a command runs, whose end is told */
	bool is_over;  /* it is in no list */
	bool is_again; /* it was ready before, and nobody is told again */
};

struct ready_checks {
	pthread_mutex_t lock; /* a leaf */
	pthread_cond_t changed;
	struct ready_check *first;
	bool is_stopping;
};

struct ready_checks *ready_checks_new(void)
{
	struct ready_checks *checks = mem_new(sizeof(*checks));
	pthread_condattr_t attr;

	pthread_mutex_init(&checks->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&checks->changed, &attr);
	pthread_condattr_destroy(&attr);
	return checks;
}

static void unref(struct ready_check *check)
{
	if (atomic_fetch_sub(&check->refs, 1) > 1)
		return;
	sandbox_unref(check->sandbox);
	free(check);
}

static struct ready_check *ref(struct ready_check *check)
{
	atomic_fetch_add(&check->refs, 1);
	return check;
}

void ready_checks_free(struct ready_checks *checks)
{
	if (!checks)
		return;
	while (checks->first) {
		struct ready_check *check = checks->first;

		checks->first = check->next;
		unref(check);
	}
	pthread_mutex_destroy(&checks->lock);
	pthread_cond_destroy(&checks->changed);
	free(checks);
}

void ready_checks_stop(struct ready_checks *checks)
{
	pthread_mutex_lock(&checks->lock);
	checks->is_stopping = true;
	pthread_cond_broadcast(&checks->changed);
	pthread_mutex_unlock(&checks->lock);
}

enum ready_state ready_check_state(struct sandbox *sandbox)
{
	return (enum ready_state)atomic_load(&sandbox->ready_state);
}

/* --- beginning and ending --- */

/* Takes one off the list and gives the list's reference to the caller; NULL if it is not there. The lock is held. */
static struct ready_check *take(struct ready_checks *checks, const struct sandbox *sandbox)
{
	for (struct ready_check **at = &checks->first; *at; at = &(*at)->next) {
		struct ready_check *check = *at;

		if (check->sandbox == sandbox) {
			*at = check->next;
			check->is_over = true;
			return check;
		}
	}
	return NULL;
}

/* What its template says of it; NULL: nothing. */
static const json_t *rule_of(const struct sandbox_record *record)
{
	return json_object_get(json_object_get(record->image, "options"), "ready");
}

bool ready_check_has_rule(struct sandbox *sandbox)
{
	bool has;

	pthread_mutex_lock(&sandbox->state);
	has = rule_of(&sandbox->record);
	pthread_mutex_unlock(&sandbox->state);
	return has;
}

/* Ends the check of a sandbox, if there is one, which is in that state then. */
static bool settle(struct sandbox *sandbox, enum ready_state state, const struct ready_check *only)
{
	struct ready_checks *checks = sandbox->engine->ready_checks;
	struct ready_check *check = NULL;

	pthread_mutex_lock(&checks->lock);
	if (!only || !only->is_over) {
		check = take(checks, sandbox);
		atomic_store(&sandbox->ready_state, state);
	}
	pthread_mutex_unlock(&checks->lock);
	if (!check)
		return false;
	unref(check);
	return true;
}

static struct ready_check *make(struct sandbox *sandbox, bool is_again)
{
	struct ready_check *check = mem_new(sizeof(*check));
	uint64_t now_ms = clock_steady_ms();

	check->refs = 1;
	check->sandbox = sandbox_ref(sandbox);
	check->pause_ms = READY_CHECK_PAUSE_MS;
	check->due_ms = now_ms;
	check->until_ms = now_ms + (uint64_t)sandbox->engine->config.ready_timeout_s * 1000;
	check->is_again = is_again;
	return check;
}

/* The list has its reference then. The lock is held. */
static void put(struct ready_checks *checks, struct ready_check *check)
{
	check->next = checks->first;
	checks->first = check;
	pthread_cond_broadcast(&checks->changed);
}

void ready_check_begin(struct sandbox *sandbox)
{
	struct ready_checks *checks = sandbox->engine->ready_checks;
	struct ready_check *check;

	settle(sandbox, rule_of(&sandbox->record) ? READY_NOT_YET : READY_YES, NULL);
	if (!rule_of(&sandbox->record))
		return;
	check = make(sandbox, false);
	pthread_mutex_lock(&checks->lock);
	put(checks, check);
	pthread_mutex_unlock(&checks->lock);
}

static bool is_listed(const struct ready_checks *checks, const struct sandbox *sandbox)
{
	const struct ready_check *check = checks->first;

	while (check && check->sandbox != sandbox)
		check = check->next;
	return check;
}

void ready_check_again(struct sandbox *sandbox, bool is_doubtful)
{
	struct ready_checks *checks = sandbox->engine->ready_checks;
	struct ready_check *check;

	if (!rule_of(&sandbox->record))
		return;
	check = make(sandbox, true);
	pthread_mutex_lock(&checks->lock);
	if (is_doubtful)
		atomic_store(&sandbox->ready_state, READY_NOT_YET);
	if (!is_listed(checks, sandbox))
		put(checks, take_ptr(&check));
	pthread_mutex_unlock(&checks->lock);
	if (check)
		unref(check);
}

void ready_check_end(struct sandbox *sandbox)
{
	settle(sandbox, READY_NOT_YET, NULL);
}

/* --- what comes of a try --- */

static void note_ready(struct ready_check *check)
{
	if (settle(check->sandbox, READY_YES, check) && !check->is_again)
		sandbox_publish(check->sandbox, "sandbox.ready");
}

static void give_up(struct ready_check *check)
{
	struct sandbox *sandbox = check->sandbox;

	if (!settle(sandbox, READY_GIVEN_UP, check))
		return;
	log_info("sandbox %s did not become ready in %u s", sandbox->id,
		sandbox->engine->config.ready_timeout_s);
	sandbox_publish(sandbox, "sandbox.not_ready");
}

static void try_later(struct ready_check *check)
{
	struct ready_checks *checks = check->sandbox->engine->ready_checks;

	pthread_mutex_lock(&checks->lock);
	if (check->is_again && !check->is_over)
		atomic_store(&check->sandbox->ready_state, READY_NOT_YET);
	check->is_asked = false;
	check->due_ms = clock_steady_ms() + check->pause_ms;
	check->pause_ms += check->pause_ms / 2;
	if (check->pause_ms > READY_CHECK_PAUSE_MAX_MS)
		check->pause_ms = READY_CHECK_PAUSE_MAX_MS;
	pthread_cond_broadcast(&checks->changed);
	pthread_mutex_unlock(&checks->lock);
}

/* --- a try --- */

static void command_ended(void *arg, const struct process_end *end)
{
	if (end->outcome == PROCESS_RAN && end->exit_code == 0)
		note_ready(arg);
	else
		try_later(arg);
}

static void command_released(void *arg)
{
	unref(arg);
}

static const struct process_events command_events = {
	.ended = command_ended, .release = command_released};

/* The link is the process's from now on. */
static int run_command(
	struct ready_check *check, struct agent_link *link, const char *line, struct err *err)
{
	const char *argv[] = {"/bin/sh", "-c", line, NULL};
	struct sandbox *sandbox = check->sandbox;
	uint64_t now_ms = clock_steady_ms();
	uint64_t left_ms = check->until_ms > now_ms ? check->until_ms - now_ms : 1;
	struct process *process = process_make(sandbox, link);
	struct sandbox_record record;
	uint32_t uid;
	char **env;
	int r;

	sandbox_read(sandbox, &record);
	uid = environment_uid(&record);
	env = environment_make(sandbox, NULL, uid, false);
	if (!process_watch(process, &command_events, ref(check)))
		abort(); /* it does not run yet */
	r = process_run(process,
		&(struct process_spec){.argv = argv,
			.env = (const char *const *)env,
			.cwd = environment_cwd(&record),
			.uid = uid,
			.gid = environment_gid(&record, uid),
			.groups = environment_groups(&record, uid),
			.is_line = true,
			.kills_tree = true,
			.timeout_ms = left_ms < READY_CHECK_COMMAND_MAX_MS
					      ? left_ms
					      : READY_CHECK_COMMAND_MAX_MS},
		err);
	environment_free(env);
	sandbox_record_fini(&record);
	process_unref(process);
	return r;
}

static bool is_listened_on(struct sandbox *sandbox, uint16_t port)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err ignored;
	auto_fd int fd = -1;

	return driver->ops->dial(driver, sandbox->id, port, 0, &fd, &ignored) == 0;
}

/* A link if it can be asked now, and a copy of what is to be asked. */
static struct agent_link *look(struct sandbox *sandbox, json_t **ret_rule)
{
	struct agent_link *link = NULL;

	pthread_mutex_lock(&sandbox->state);
	if (sandbox->record.status == SANDBOX_RUNNING && sandbox->link && sandbox->greeted &&
		!sandbox->ending) {
		link = agent_link_ref(sandbox->link);
		*ret_rule = json_deep_copy(rule_of(&sandbox->record));
	}
	pthread_mutex_unlock(&sandbox->state);
	return link;
}

static void try(struct ready_check *check)
{
	struct sandbox *sandbox = check->sandbox;
	json_auto_t *rule = NULL;
	struct agent_link *link = look(sandbox, &rule);
	const char *line = json_string_value(json_object_get(rule, "command"));
	json_int_t port = json_integer_value(json_object_get(rule, "port"));
	struct err err;

	if (clock_steady_ms() >= check->until_ms) {
		agent_link_unref(link);
		give_up(check);
	} else if (!link) {
		try_later(check);
	} else if (line) {
		if (run_command(check, link, line, &err) < 0)
			try_later(check);
	} else {
		agent_link_unref(link);
		if (is_listened_on(sandbox, (uint16_t)port))
			note_ready(check);
		else
			try_later(check);
	}
}

/* --- the thread --- */

/* The one that is due next, of those that wait for nothing else. The lock is held. */
static struct ready_check *next_due(const struct ready_checks *checks)
{
	struct ready_check *next = NULL;

	for (struct ready_check *check = checks->first; check; check = check->next) {
		if (!check->is_asked && (!next || check->due_ms < next->due_ms))
			next = check;
	}
	return next;
}

/* Until it is due, or the list has changed. The lock is held. */
static void wait_until(struct ready_checks *checks, const struct ready_check *check)
{
	struct timespec deadline;

	if (!check) {
		pthread_cond_wait(&checks->changed, &checks->lock);
		return;
	}
	deadline.tv_sec = (time_t)(check->due_ms / 1000);
	deadline.tv_nsec = (long)(check->due_ms % 1000) * 1000000;
	(void)!pthread_cond_timedwait(&checks->changed, &checks->lock, &deadline);
}

void *ready_check_run(void *arg)
{
	struct ready_checks *checks = ((struct engine *)arg)->ready_checks;

	pthread_setname_np(pthread_self(), "ready-check");
	pthread_mutex_lock(&checks->lock);
	while (!checks->is_stopping) {
		struct ready_check *check = next_due(checks);

		if (!check || check->due_ms > clock_steady_ms()) {
			wait_until(checks, check);
			continue;
		}
		check->is_asked = true;
		ref(check);
		pthread_mutex_unlock(&checks->lock);
		try(check);
		unref(check);
		pthread_mutex_lock(&checks->lock);
	}
	pthread_mutex_unlock(&checks->lock);
	return NULL;
}
