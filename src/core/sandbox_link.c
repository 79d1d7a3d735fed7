/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox_link.h"

#include "base/log.h"
#include "core/cord.h"
#include "core/network.h"
#include "core/roll.h"
#include "core/starter.h"
#include "wire/pack.h"

#include <errno.h>
#include <time.h>

#define HELLO_TIMEOUT_MS 20000

static int on_hello(struct sandbox *sandbox, const struct frame *frame)
{
	struct unpack in = UNPACK_INIT(frame->payload, frame->len);
	uint32_t version = unpack_u32(&in), count = unpack_u32(&in);
	struct link *link;
	bool is_repeated;

	if (in.bad || version != AGENT_VERSION || count > AGENT_PROCESSES_MAX)
		return -EPROTO;
	pthread_mutex_lock(&sandbox->state);
	link = sandbox->link ? link_ref(sandbox->link) : NULL;
	is_repeated = sandbox->greeted;
	pthread_mutex_unlock(&sandbox->state);
	if (is_repeated) {
		link_unref(link);
		return -EPROTO;
	}
	if (link)
		roll_call(sandbox, link, &in, count);
	link_unref(link);
	pthread_mutex_lock(&sandbox->state);
	sandbox->greeted = true;
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	starter_resume(sandbox);
	return unpack_done(&in) ? 0 : -EPROTO;
}

static int on_frame(void *arg, const struct frame *frame)
{
	struct sandbox *sandbox = arg;

	return frame->kind == AGENT_HELLO ? on_hello(sandbox, frame)
					  : process_frame(sandbox, frame);
}

/* The agent is gone. The verb that ends it knows; else the reaper finds out what happened. Whoever it is
 * ends the processes too, with the reason. */
static void on_lost(void *arg)
{
	struct sandbox *sandbox = arg;
	struct engine *engine = sandbox->engine;
	struct link *link;
	bool ending;

	pthread_mutex_lock(&sandbox->state);
	link = take_ptr(&sandbox->link);
	ending = sandbox->ending;
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	link_unref(link);
	if (!ending) {
		pthread_mutex_lock(&engine->lock);
		if (engine->lost_count == engine->lost_cap) {
			engine->lost_cap = engine->lost_cap ? engine->lost_cap * 2 : 16;
			engine->lost =
				realloc(engine->lost, engine->lost_cap * sizeof(*engine->lost));
			if (!engine->lost)
				abort();
		}
		engine->lost[engine->lost_count++] = sandbox_ref(sandbox);
		pthread_cond_signal(&engine->work);
		pthread_mutex_unlock(&engine->lock);
	}
	sandbox_unref(sandbox);
}

static const struct link_events link_events = {.frame = on_frame, .lost = on_lost};

static struct timespec deadline_after(unsigned ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	return ts;
}

static void greet(struct link *link)
{
	struct buf version = BUF_INIT(8);

	pack_u32(&version, AGENT_VERSION);
	/* If it cannot be sent the link is lost, which whoever waits for the answer will see. */
	(void)!link_send(link, AGENT_ATTACH, 0, version.data, version.len, -1);
	buf_fini(&version);
}

/* Takes up a new link; a reference of it. life is held. */
static int open_link(struct sandbox *sandbox, int link_fd, const struct walls *walls,
	struct link **ret_link, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->state);
	sandbox->greeted = sandbox->ending = false;
	sandbox->end_reason = END_NONE;
	r = link_open(sandbox->engine->reactor, link_fd, &link_events, sandbox_ref(sandbox),
		&sandbox->link, err);
	if (r < 0) {
		pthread_mutex_unlock(&sandbox->state);
		sandbox_unref(sandbox);
		return r;
	}
	sandbox->walls = *walls;
	*ret_link = link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

int sandbox_link_await(struct sandbox *sandbox, struct link **ret_link, struct err *err)
{
	struct timespec deadline = deadline_after(HELLO_TIMEOUT_MS);
	int r = 0, waited = 0;

	pthread_mutex_lock(&sandbox->state);
	while (sandbox->link && !sandbox->greeted && waited == 0)
		waited = pthread_cond_timedwait(&sandbox->changed, &sandbox->state, &deadline);
	if (!sandbox->link)
		r = err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", sandbox->id);
	else if (!sandbox->greeted)
		r = err_set(err, ERR_TIMEOUT, "the agent of sandbox %s did not answer within %d s",
			sandbox->id, HELLO_TIMEOUT_MS / 1000);
	else
		*ret_link = link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	return r;
}

struct link *sandbox_link_expect_end(struct sandbox *sandbox, enum end_reason reason)
{
	struct link *link;

	pthread_mutex_lock(&sandbox->state);
	sandbox->ending = true;
	sandbox->end_reason = reason;
	link = sandbox->link ? link_ref(sandbox->link) : NULL;
	pthread_mutex_unlock(&sandbox->state);
	return link;
}

void sandbox_link_ask_to_end(struct sandbox *sandbox, enum end_reason reason)
{
	unsigned grace_ms = sandbox->engine->config.stop_grace_ms;
	struct timespec deadline = deadline_after(grace_ms + 500);
	struct buf grace = BUF_INIT(8);
	struct link *link;

	link = sandbox_link_expect_end(sandbox, reason);
	if (!link)
		return;
	pack_u32(&grace, grace_ms);
	if (link_send(link, AGENT_SHUTDOWN, 0, grace.data, grace.len, -1) == 0) {
		int waited = 0;

		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link && waited == 0)
			waited = pthread_cond_timedwait(
				&sandbox->changed, &sandbox->state, &deadline);
		pthread_mutex_unlock(&sandbox->state);
	}
	buf_fini(&grace);
	link_unref(link);
}

void sandbox_link_close(struct sandbox *sandbox, const struct termination *how)
{
	struct link *link = sandbox_link_expect_end(sandbox, how->reason);

	starter_leave(sandbox);
	network_close(sandbox);
	cord_cut_all(sandbox);
	if (link) {
		link_close(link);
		link_unref(link);
		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link)
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
		pthread_mutex_unlock(&sandbox->state);
	}
	roll_end_all(sandbox, how);
}

int sandbox_link_meet(
	struct sandbox *sandbox, int link_fd, const struct walls *walls, struct err *err)
{
	struct link *link = NULL;
	int r = open_link(sandbox, link_fd, walls, &link, err);

	if (r == 0) {
		greet(link);
		link_unref(take_ptr(&link));
		r = sandbox_link_await(sandbox, &link, err);
	}
	link_unref(link);
	return r;
}

/* Without waiting: one agent that does not answer must not hold up the start of the daemon. */
int sandbox_adopt(struct sandbox *sandbox, int link_fd, const struct walls *walls, struct err *err)
{
	struct link *link;
	int r = open_link(sandbox, link_fd, walls, &link, err);

	if (r < 0)
		return r;
	r = roll_recall(sandbox, link, err);
	if (r == 0)
		r = starter_recall(sandbox, err);
	/* Without a way out it goes on; the next command tries again. */
	if (r == 0 && network_open(sandbox, err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err->message);
	if (r == 0)
		greet(link);
	link_unref(link);
	return r;
}
