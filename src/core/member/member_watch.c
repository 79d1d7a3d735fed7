/* SPDX-License-Identifier: Apache-2.0 */
#include "core/member/member_watch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "core/engine/engine.h"
#include "core/engine/member_state.h"
#include "core/engine/sandbox_handle.h"
#include "core/member/http_check.h"
#include "core/process/environment.h"
#include "core/process/process.h"
#include "core/process/process_state.h"
#include "core/process/start_command.h"
#include "core/sandbox/member.h"
#include "model/sandbox/restart.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUND_MS	    100 /* while there are members */
#define IDLE_MS		    5000
#define DIAL_MS		    5	/* to be taken; others wait meanwhile */
#define FIRST_MS	    200 /* between checks of one that was not healthy yet */
#define DEFAULT_INTERVAL_MS 5000
#define DEFAULT_TIMEOUT_MS  3000
#define DEFAULT_RETRIES	    3	  /* failures until one that was healthy is not any more */
#define START_PERIOD_MS	    60000 /* until one that never was is called unhealthy */

/* --- telling --- */

static void tell(struct sandbox *sandbox, const char *health)
{
	auto_(sandbox_unrefp) struct sandbox *primary = member_primary(sandbox);
	const char *role =
		sandbox->record.role[0] ? sandbox->record.role : member_roles[MEMBER_PRIMARY];
	char json[256], type[32], now[CLOCK_TEXT_LEN];

	if (!primary)
		return;
	clock_format(clock_wall_ms(), now);
	snprintf(type, sizeof(type), "member.%s", health);
	snprintf(json, sizeof(json),
		"{\"sandbox\":\"%s\",\"member\":\"%s\",\"id\":\"%s\",\"health\":\"%s\",\"at\":\"%"
		"s\"}",
		primary->id, role, sandbox->id, health, now);
	sandbox_tell(primary, type, json);
}

/* --- health --- */

static uint64_t number_in(const json_t *health, const char *name, uint64_t otherwise)
{
	json_int_t value = json_integer_value(json_object_get(health, name));

	return value > 0 ? (uint64_t)value : otherwise;
}

/* Until it is asked again; its state is held. */
static uint64_t pause_after(const struct sandbox *sandbox, const json_t *health, uint64_t now_ms)
{
	uint64_t usual_ms = number_in(health, "interval_ms", DEFAULT_INTERVAL_MS);
	bool hurries = sandbox->member.health == MEMBER_HEALTH_STARTING ||
		       now_ms < sandbox->member.hurry_until_ms;

	return hurries && usual_ms > FIRST_MS ? FIRST_MS : usual_ms;
}

/* What a check said of this run of a sandbox. */
static void note_result(struct sandbox *sandbox, const json_t *health, unsigned run, bool is_good)
{
	enum member_health_state before, after;
	uint64_t now_ms = clock_steady_ms();

	pthread_mutex_lock(&sandbox->state);
	before = after = sandbox->member.health;
	if (run == sandbox->member.run && before != MEMBER_HEALTH_NONE) {
		sandbox->member.is_checking = false;
		sandbox->member.failures = is_good ? 0 : sandbox->member.failures + 1;
		if (is_good)
			after = MEMBER_HEALTH_GOOD;
		else if (before == MEMBER_HEALTH_GOOD &&
			 sandbox->member.failures >= number_in(health, "retries", DEFAULT_RETRIES))
			after = MEMBER_HEALTH_BAD;
		else if (before == MEMBER_HEALTH_STARTING &&
			 now_ms - sandbox->member.up_since_ms >
				 number_in(health, "start_period_ms", START_PERIOD_MS))
			after = MEMBER_HEALTH_BAD;
		sandbox->member.health = after;
		sandbox->member.next_check_ms = now_ms + pause_after(sandbox, health, now_ms);
	}
	pthread_mutex_unlock(&sandbox->state);
	if (after == before)
		return;
	tell(sandbox, after == MEMBER_HEALTH_GOOD ? "healthy" : "unhealthy");
	member_state_wake_watch(sandbox->engine);
}

/* A check whose end is waited for: that of a command, or an answer over HTTP. */
struct probe {
	struct probe *next; /* of those that wait for an answer */
	struct sandbox *sandbox;
	json_t *health;
	unsigned run;
	int fd;
	uint64_t until_ms;
};

static struct probe *probe_new(struct sandbox *sandbox, const json_t *health, unsigned run)
{
	struct probe *probe = mem_new(sizeof(*probe));

	*probe = (struct probe){.sandbox = sandbox_ref(sandbox),
		.health = json_deep_copy(health),
		.run = run,
		.fd = -1};
	return probe;
}

static void probe_free(struct probe *probe)
{
	fd_close(probe->fd);
	json_decref(probe->health);
	sandbox_unref(probe->sandbox);
	free(probe);
}

static void on_ended(void *arg, const struct process_end *end)
{
	struct probe *probe = arg;

	note_result(probe->sandbox, probe->health, probe->run,
		end->outcome == PROCESS_RAN && end->exit_code == 0);
}

static void on_released(void *arg)
{
	probe_free(arg);
}

static const struct process_events probe_events = {.ended = on_ended, .release = on_released};

/* What the thread keeps from round to round. */
struct watch {
	struct probe *asked; /* over HTTP, and not answered yet */
	bool has_members;
};

static uint64_t deadline_of(const json_t *health)
{
	return clock_steady_ms() + number_in(health, "timeout_ms", DEFAULT_TIMEOUT_MS);
}

static void ask(
	struct watch *watch, struct sandbox *sandbox, const json_t *health, unsigned run, int *fd)
{
	struct probe *probe;

	if (!http_check_ask(*fd, json_string_value(json_object_get(health, "path")))) {
		note_result(sandbox, health, run, false);
		return;
	}
	probe = probe_new(sandbox, health, run);
	probe->fd = take_fd(fd);
	probe->until_ms = deadline_of(health);
	probe->next = watch->asked;
	watch->asked = probe;
}

static void try_port(
	struct watch *watch, struct sandbox *sandbox, const json_t *health, unsigned run)
{
	struct driver *driver = sandbox->engine->config.driver;
	uint16_t port = (uint16_t)json_integer_value(json_object_get(health, "port"));
	auto_fd int fd = -1;
	struct err ignored;

	if (driver->ops->dial(driver, sandbox->id, port, DIAL_MS, &fd, &ignored) < 0)
		note_result(sandbox, health, run, false);
	else if (json_object_get(health, "path"))
		ask(watch, sandbox, health, run, &fd);
	else
		note_result(sandbox, health, run, true);
}

/* One that is paused cannot answer, and has all its time again when it goes on. */
static bool has_time(struct probe *probe)
{
	bool is_paused;

	pthread_mutex_lock(&probe->sandbox->state);
	is_paused = probe->sandbox->record.status == SANDBOX_PAUSED;
	pthread_mutex_unlock(&probe->sandbox->state);
	if (is_paused)
		probe->until_ms = deadline_of(probe->health);
	return clock_steady_ms() < probe->until_ms;
}

/* Takes what has been answered, or will not be, off the list. */
static void read_answers(struct watch *watch)
{
	struct probe *probe;

	for (struct probe **at = &watch->asked; (probe = *at);) {
		enum http_check_answer answer = http_check_look(probe->fd);

		if (answer == HTTP_CHECK_NONE && has_time(probe)) {
			at = &probe->next;
			continue;
		}
		*at = probe->next;
		note_result(probe->sandbox, probe->health, probe->run, answer == HTTP_CHECK_GOOD);
		probe_free(probe);
	}
}

static void drop_answers(struct watch *watch)
{
	struct probe *probe;

	while ((probe = watch->asked)) {
		watch->asked = probe->next;
		probe_free(probe);
	}
}

/* Asks a command of the sandbox, whose end is told. Nothing of it is kept, and it is no use of the sandbox. */
static int begin_probe(
	struct sandbox *sandbox, struct agent_link *link, const json_t *health, unsigned run)
{
	const char *argv[] = {
		"/bin/sh", "-c", json_string_value(json_object_get(health, "command")), NULL};
	struct process *process = process_make(sandbox, link);
	struct sandbox_record record;
	struct err err;
	char **env;
	uint32_t uid;
	int r;

	process->is_probe = true;
	if (!process_watch(process, &probe_events, probe_new(sandbox, health, run)))
		abort();
	sandbox_read(sandbox, &record);
	uid = environment_uid(&record);
	env = environment_make(sandbox, NULL, uid, false);
	r = process_run(process,
		&(struct process_spec){.argv = argv,
			.env = (const char *const *)env,
			.cwd = "/",
			.uid = uid,
			.gid = environment_gid(&record, uid),
			.groups = environment_groups(&record, uid),
			.is_line = true,
			.kills_tree = true,
			.timeout_ms = number_in(health, "timeout_ms", DEFAULT_TIMEOUT_MS)},
		&err);
	environment_free(env);
	sandbox_record_fini(&record);
	process_unref(process);
	return r;
}

/* Checks one if that is due. */
static void check(struct watch *watch, struct sandbox *sandbox)
{
	uint64_t now_ms = clock_steady_ms();
	struct agent_link *link = NULL;
	json_auto_t *health = NULL;
	unsigned run = 0;

	pthread_mutex_lock(&sandbox->state);
	if (sandbox->record.status == SANDBOX_RUNNING && sandbox->link && sandbox->greeted &&
		!sandbox->ending && !sandbox->member.is_held && !sandbox->member.is_checking &&
		sandbox->member.health != MEMBER_HEALTH_NONE &&
		now_ms >= sandbox->member.next_check_ms) {
		link = agent_link_ref(sandbox->link);
		sandbox->member.is_checking = true;
		run = sandbox->member.run;
		health = json_deep_copy(
			json_object_get(member_state_policy(&sandbox->record), "health"));
	}
	pthread_mutex_unlock(&sandbox->state);
	if (!link)
		return;
	if (json_object_get(health, "command")) {
		if (begin_probe(sandbox, link, health, run) < 0)
			note_result(sandbox, health, run, false);
		return;
	}
	agent_link_unref(link);
	try_port(watch, sandbox, health, run);
}

/* --- letting go on --- */

/* Whether those who depend on it may go on. */
static bool is_well(struct sandbox *sandbox)
{
	bool is_well;

	pthread_mutex_lock(&sandbox->state);
	is_well = sandbox->record.status == SANDBOX_RUNNING && !sandbox->member.is_held &&
		  (sandbox->member.health == MEMBER_HEALTH_NONE ||
			  sandbox->member.health == MEMBER_HEALTH_GOOD);
	pthread_mutex_unlock(&sandbox->state);
	return is_well;
}

struct group {
	struct sandbox *of[MEMBER_ROLE_COUNT]; /* by role; references, or NULL */
};

static bool may_go_on(const struct group *group, const json_t *depends_on)
{
	json_t *role;
	size_t i;

	json_array_foreach((json_t *)depends_on, i, role)
	{
		enum member_role on = member_role_parse(json_string_value(role));

		if (on == MEMBER_ROLE_COUNT || !group->of[on] || !is_well(group->of[on]))
			return false;
	}
	return true;
}

static void release(struct sandbox *sandbox, const struct group *group)
{
	json_auto_t *depends_on = NULL;

	pthread_mutex_lock(&sandbox->state);
	if (sandbox->member.is_held)
		depends_on = json_deep_copy(member_state_depends_on(&sandbox->record));
	pthread_mutex_unlock(&sandbox->state);
	if (!depends_on || !may_go_on(group, depends_on))
		return;
	pthread_mutex_lock(&sandbox->state);
	sandbox->member.is_held = false;
	sandbox->member.up_since_ms = clock_steady_ms();
	pthread_mutex_unlock(&sandbox->state);
	start_command_resume(sandbox);
}

/* --- starting again --- */

static bool is_dead(struct sandbox *member)
{
	const char *rule;
	bool is_dead;

	pthread_mutex_lock(&member->state);
	rule = json_string_value(json_object_get(member_state_policy(&member->record), "restart"));
	is_dead = !member->gone && !(rule && strcmp(rule, "never") == 0) &&
		  (member->record.status == SANDBOX_STOPPED ||
			  member->record.status == SANDBOX_ERROR) &&
		  clock_steady_ms() >= member->member.next_start_ms;
	pthread_mutex_unlock(&member->state);
	return is_dead;
}

/* Whoever has a verb at work on the sandbox goes before: then it is tried in the next round. */
static void start_again(struct sandbox *primary, struct sandbox *member)
{
	uint64_t now_ms = clock_steady_ms();
	struct err err;

	if (!is_dead(member) || pthread_mutex_trylock(&primary->life) != 0)
		return;
	if (!primary->gone && primary->record.status == SANDBOX_RUNNING &&
		pthread_mutex_trylock(&member->life) == 0) {
		if (is_dead(member)) {
			uint64_t up_ms = member->member.up_since_ms;

			member->member.next_start_ms =
				now_ms + restart_pause_ms(&member->member.deaths,
						 up_ms && now_ms > up_ms ? now_ms - up_ms : 0);
			if (member_start(member, &err) == 0)
				log_info("member %s of sandbox %s was started again",
					member->record.role, primary->id);
		}
		pthread_mutex_unlock(&member->life);
	}
	pthread_mutex_unlock(&primary->life);
}

/* --- rounds --- */

/* The members of a sandbox that runs; false if it has none. */
static bool gather(struct sandbox *primary, struct group *ret_group)
{
	char ids[MEMBER_ROLE_COUNT][ID_LEN + 1] = {0};
	struct group group = {0};
	bool has_any = false;
	struct err ignored;
	json_t *entry;
	size_t i;

	pthread_mutex_lock(&primary->state);
	if (primary->record.status == SANDBOX_RUNNING && !primary->record.parent[0]) {
		json_array_foreach(primary->record.members, i, entry)
		{
			const char *id = json_string_value(json_object_get(entry, "id"));
			enum member_role role = member_role_parse(
				json_string_value(json_object_get(entry, "role")));

			if (role < MEMBER_ROLE_COUNT && id && id[0])
				snprintf(ids[role], sizeof(ids[role]), "%s", id);
			has_any = true;
		}
	}
	pthread_mutex_unlock(&primary->state);
	if (!has_any)
		return false;
	group.of[MEMBER_PRIMARY] = sandbox_ref(primary);
	for (int role = 1; role < MEMBER_ROLE_COUNT; role++) {
		if (ids[role][0] && sandbox_get(primary->engine, NULL, ids[role], &group.of[role],
					    &ignored) < 0)
			group.of[role] = NULL;
	}
	*ret_group = group;
	return true;
}

static void look_after(struct sandbox *primary, void *arg)
{
	struct watch *watch = arg;
	struct group group;

	if (!gather(primary, &group))
		return;
	watch->has_members = true;
	for (int role = 0; role < MEMBER_ROLE_COUNT; role++) {
		struct sandbox *member = group.of[role];

		if (!member)
			continue;
		if (role != MEMBER_PRIMARY)
			start_again(primary, member);
		check(watch, member);
		release(member, &group);
	}
	for (int role = 0; role < MEMBER_ROLE_COUNT; role++)
		sandbox_unref(group.of[role]);
}

/* False when the engine is to end. */
static bool wait_round(struct engine *engine, unsigned ms)
{
	struct timespec deadline;
	bool goes_on;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += ms / 1000;
	deadline.tv_nsec += (long)(ms % 1000) * 1000000;
	if (deadline.tv_nsec >= 1000000000) {
		deadline.tv_sec++;
		deadline.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&engine->lock);
	if (!engine->closing)
		pthread_cond_timedwait(&engine->work, &engine->lock, &deadline);
	goes_on = !engine->closing;
	pthread_mutex_unlock(&engine->lock);
	return goes_on;
}

void *member_watch_run(void *arg)
{
	struct engine *engine = arg;
	struct watch watch = {.has_members = true};

	pthread_setname_np(pthread_self(), "member-watch");
	while (wait_round(engine, watch.has_members || watch.asked ? ROUND_MS : IDLE_MS)) {
		read_answers(&watch);
		watch.has_members = atomic_exchange(&engine->has_members, false);
		if (!watch.has_members)
			continue;
		watch.has_members = false;
		engine_visit(engine, look_after, &watch);
		if (watch.has_members)
			atomic_store(&engine->has_members, true);
	}
	drop_answers(&watch);
	return NULL;
}
