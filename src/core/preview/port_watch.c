/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port watch is a timer on the event loop's thread. When it expires and a look is due, the agent is asked; then the timer is
 * not set before the question has come to its end. That needs no deadline: the channel ends with the helper that
 * answers, with the agent and with the link, and one that is frozen is not asked again. All of that belongs to
 * that thread alone; the list of what is open, and who follows, to engine.lock.
 */
#include "core/preview/port_watch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"
#include "core/preview/port_list.h"
#include "core/preview/port_pace.h"
#include "event/timer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct port_watch {
	struct engine *engine;
	char sandbox_id[ID_LEN + 1];
	struct owner owner;	 /* of all who follow */
	struct port_watch *next; /* in engine->port_watches */
	unsigned followers;
	struct port_list open;

	/* The event loop's thread only. */
	unsigned refs; /* the timer, and the question that is under way */
	struct timer *timer;
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

	event_bus_publish(watch->engine->config.bus, &watch->owner, watch->sandbox_id, type, json);
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

/* --- looking; the event loop's thread --- */

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
	timer_set(watch->timer, PORT_PACE_TICK_MS);
}

static int ask(struct port_watch *watch, struct agent_link *link)
{
	struct question *question = mem_new(sizeof(*question));
	struct err ignored;
	int r = port_list_ask(
		watch->engine, watch->sandbox_id, link, watch->open.digest, &question->fd);

	if (r < 0) {
		free(question);
		return r;
	}
	question->watch = watch;
	question->answer = BUF_INIT(PORT_LIST_ANSWER_MAX);
	r = watch_open(watch->engine->loop, question->fd, EPOLLIN, answer_ready, question_released,
		question, &question->readiness, &ignored);
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
struct port_state {
	struct agent_link *link; /* to ask, if not NULL */
	bool is_down;		 /* so nothing is open */
	unsigned agent_reports;
};

static struct port_state look(struct port_watch *watch)
{
	struct sandbox *sandbox = sandbox_handle_find(watch->engine, watch->sandbox_id);
	struct port_state port_state = {.is_down = true};

	if (!sandbox)
		return port_state;
	pthread_mutex_lock(&sandbox->state);
	port_state.is_down = sandbox->record.status != SANDBOX_PAUSED && !sandbox->link;
	if (sandbox->record.status == SANDBOX_RUNNING && sandbox->link && sandbox->greeted &&
		(sandbox->processes || watch->open.count > 0))
		port_state.link = agent_link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	port_state.agent_reports = atomic_load(&sandbox->agent_reports);
	sandbox_unref(sandbox);
	return port_state;
}

static void expired(void *arg)
{
	struct port_watch *watch = arg;
	struct port_state port_state = look(watch);
	bool is_asked = false;

	if (port_state.is_down && watch->open.digest)
		note(watch, &(struct port_list){0});
	if (port_state.link && port_pace_tick(&watch->pace, port_state.agent_reports))
		is_asked = ask(watch, port_state.link) == 0;
	agent_link_unref(port_state.link);
	if (!is_asked)
		timer_set(watch->timer, PORT_PACE_TICK_MS);
}

static void timer_released(void *arg)
{
	struct port_watch *watch = arg;

	end_question(watch);
	unref(watch);
}

/* --- who follows --- */

static struct port_watch *make_watch(
	struct engine *engine, const char *sandbox_id, const struct owner *owner)
{
	struct port_watch *watch = mem_new(sizeof(*watch));

	watch->engine = engine;
	watch->refs = 1;
	watch->owner = *owner;
	snprintf(watch->sandbox_id, sizeof(watch->sandbox_id), "%s", sandbox_id);
	watch->timer = timer_open(engine->loop, expired, timer_released, watch);
	timer_set(watch->timer, 0);
	watch->next = engine->port_watches;
	engine->port_watches = watch;
	return watch;
}

struct port_watch *port_watch_join(struct engine *engine, const char *sandbox_id,
	const struct owner *owner, event_fn event, void *arg)
{
	struct event opened = {.type = "port.opened", .subject = sandbox_id};
	struct port_watch *watch = engine->port_watches;

	while (watch && strcmp(watch->sandbox_id, sandbox_id) != 0)
		watch = watch->next;
	if (!watch)
		watch = make_watch(engine, sandbox_id, owner);
	watch->followers++;
	for (size_t i = 0; i < watch->open.count; i++) {
		auto_free char *json = describe(watch, &watch->open.ports[i]);

		opened.sequence = event_bus_next(engine->config.bus);
		opened.json = json;
		event(arg, &opened);
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
	timer_close(watch->timer);
}
