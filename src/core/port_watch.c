/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch is an alarm on the reactor's thread. When it rings and it is time, the agent is asked; then the alarm is
 * not set before the question has come to its end. That needs no deadline: the channel ends with the helper that
 * answers, with the agent and with the link, and one that is frozen is not asked again. All of that belongs to
 * that thread alone; the list of what is open, and who follows, to engine.lock.
 */
#include "core/port_watch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/alarm.h"
#include "core/port_list.h"
#include "core/port_pace.h"
#include "core/sandbox_handle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct port_watch {
	struct engine *engine;
	char sandbox_id[ID_LEN + 1];
	struct port_watch *next; /* in engine->port_watches */
	unsigned followers;
	struct port_list open;

	/* The reactor's thread only. */
	unsigned refs; /* the alarm, and the question that is under way */
	struct alarm *alarm;
	struct port_pace pace;
	struct question *question;
};

/* One look: a channel, and as much of the answer as is there. */
struct question {
	struct port_watch *watch;
	int fd;
	struct watch *readiness;
	struct buf answer;
};

static void unref(struct port_watch *watch)
{
	if (--watch->refs > 0)
		return;
	port_list_fini(&watch->open);
	free(watch);
}

/* --- telling; engine.lock is held --- */

static char *describe(const struct port_watch *watch, const struct port *port)
{
	char now[CLOCK_TEXT_LEN], *text;
	json_t *json = port_to_json(port);

	clock_format(clock_wall_ms(), now);
	json_object_set_new(json, "sandbox", json_string(watch->sandbox_id));
	json_object_set_new(json, "at", json_string(now));
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return text;
}

static void tell(const struct port_watch *watch, const struct port *port, const char *type)
{
	auto_free char *json = describe(watch, port);

	engine_tell(watch->engine, watch->sandbox_id, type, json);
}

/* Both lists are in order. A port that another process has now was closed in between. */
static void tell_differences(const struct port_watch *watch, const struct port_list *now)
{
	const struct port_list *before = &watch->open;
	size_t i = 0, j = 0;

	while (i < before->count || j < now->count) {
		const struct port *old = i < before->count ? &before->ports[i] : NULL;
		const struct port *new = j < now->count ? &now->ports[j] : NULL;
		int order = !old ? 1 : !new ? -1 : port_compare(old, new);
		bool is_same = order == 0 && old->pid == new->pid;

		if (order <= 0 && !is_same)
			tell(watch, old, "port.closed");
		if (order >= 0 && !is_same)
			tell(watch, new, "port.opened");
		i += order <= 0;
		j += order >= 0;
	}
}

/* --- looking; the reactor's thread --- */

/* Takes the list over. */
static void note(struct port_watch *watch, struct port_list *now)
{
	pthread_mutex_lock(&watch->engine->lock);
	/* One that nobody follows any more may have a successor, whose business it is. */
	if (watch->followers > 0)
		tell_differences(watch, now);
	port_list_fini(&watch->open);
	watch->open = *now;
	port_pace_quicken(&watch->pace);
	pthread_mutex_unlock(&watch->engine->lock);
}

static void question_released(void *arg)
{
	struct question *question = arg;

	fd_close(question->fd);
	buf_fini(&question->answer);
	unref(question->watch);
	free(question);
}

static void end_question(struct port_watch *watch)
{
	struct question *question = take_ptr(&watch->question);

	if (question)
		watch_close(question->readiness);
}

static void take_answer(struct port_watch *watch, const struct buf *answer)
{
	struct port_list now;
	int r = answer->len > 0 ? port_list_parse(answer->data, answer->len, &now) : 0;

	if (r > 0)
		note(watch, &now);
	if (r < 0)
		log_warning("sandbox %s gave a malformed list of ports", watch->sandbox_id);
}

static void answer_ready(void *arg, uint32_t events)
{
	struct question *question = arg;
	struct port_watch *watch = question->watch;
	uint8_t data[4096];
	ssize_t n = recv(question->fd, data, sizeof(data), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && buf_append(&question->answer, data, (size_t)n) == 0)
		return;
	if (n == 0)
		take_answer(watch, &question->answer);
	end_question(watch);
	alarm_set(watch->alarm, PORT_PACE_TICK_MS);
}

static int ask(struct port_watch *watch, struct link *link)
{
	struct question *question = mem_new(sizeof(*question));
	struct err ignored;
	int r = port_list_ask(link, watch->open.digest, &question->fd);

	if (r < 0) {
		free(question);
		return r;
	}
	question->watch = watch;
	question->answer = BUF_INIT(PORT_LIST_ANSWER_MAX);
	r = watch_open(watch->engine->reactor, question->fd, EPOLLIN, answer_ready,
		question_released, question, &question->readiness, &ignored);
	if (r < 0) {
		fd_close(question->fd);
		free(question);
		return r;
	}
	watch->question = question;
	watch->refs++;
	return 0;
}

/* What there is to do about a sandbox at present. */
struct outlook {
	struct link *link; /* to ask, if not NULL */
	bool is_down;	   /* so nothing is open */
	unsigned stirs;
};

static struct outlook look(struct port_watch *watch)
{
	struct sandbox *sandbox = sandbox_handle_find(watch->engine, watch->sandbox_id);
	struct outlook outlook = {.is_down = true};

	if (!sandbox)
		return outlook;
	pthread_mutex_lock(&sandbox->state);
	outlook.is_down = sandbox->record.status != SANDBOX_PAUSED && !sandbox->link;
	if (sandbox->record.status == SANDBOX_RUNNING && sandbox->link && sandbox->greeted &&
		(sandbox->processes || watch->open.count > 0))
		outlook.link = link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	outlook.stirs = atomic_load(&sandbox->stirs);
	sandbox_unref(sandbox);
	return outlook;
}

static void rung(void *arg)
{
	struct port_watch *watch = arg;
	struct outlook outlook = look(watch);
	bool is_asked = false;

	if (outlook.is_down && watch->open.digest)
		note(watch, &(struct port_list){0});
	if (outlook.link && port_pace_tick(&watch->pace, outlook.stirs))
		is_asked = ask(watch, outlook.link) == 0;
	link_unref(outlook.link);
	if (!is_asked)
		alarm_set(watch->alarm, PORT_PACE_TICK_MS);
}

static void alarm_released(void *arg)
{
	struct port_watch *watch = arg;

	end_question(watch);
	unref(watch);
}

/* --- who follows --- */

static struct port_watch *make_watch(struct engine *engine, const char *sandbox_id)
{
	struct port_watch *watch = mem_new(sizeof(*watch));
	struct err err;

	watch->engine = engine;
	watch->refs = 1;
	snprintf(watch->sandbox_id, sizeof(watch->sandbox_id), "%s", sandbox_id);
	if (alarm_open(engine->reactor, 0, rung, alarm_released, watch, &watch->alarm, &err) < 0) {
		log_warning("ports of sandbox %s are not watched: %s", sandbox_id, err.message);
		free(watch);
		return NULL;
	}
	watch->next = engine->port_watches;
	engine->port_watches = watch;
	return watch;
}

struct port_watch *port_watch_join(
	struct engine *engine, const char *sandbox_id, engine_event_fn event, void *arg)
{
	struct port_watch *watch = engine->port_watches;

	while (watch && strcmp(watch->sandbox_id, sandbox_id) != 0)
		watch = watch->next;
	if (!watch)
		watch = make_watch(engine, sandbox_id);
	if (!watch)
		return NULL;
	watch->followers++;
	for (size_t i = 0; i < watch->open.count; i++) {
		auto_free char *json = describe(watch, &watch->open.ports[i]);

		event(arg, ++engine->event_sequence, "port.opened", json);
	}
	return watch;
}

void port_watch_leave(struct port_watch *watch)
{
	struct port_watch **at;

	if (!watch || --watch->followers > 0)
		return;
	at = &watch->engine->port_watches;
	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	alarm_close(watch->alarm);
}
