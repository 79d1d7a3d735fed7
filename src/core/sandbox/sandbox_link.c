/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_link.h"

#include "base/log.h"
#include "core/engine/member_state.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_network.h"
#include "core/process/process_table.h"
#include "core/process/ready_check.h"
#include "core/process/start_command.h"
#include "core/sandbox/forwarded_conn.h"
#include "wire/pack.h"

#include <errno.h>
#include <time.h>

#define HELLO_TIMEOUT_MS 20000

static int on_hello(struct sandbox *sandbox, const struct frame *frame)
{
	struct unpack in = UNPACK_INIT(frame->payload, frame->len);
	uint32_t version = unpack_u32(&in), count = unpack_u32(&in);
	struct agent_link *link;
	bool is_repeated;

	if (in.bad || version != AGENT_VERSION || count > AGENT_PROCESSES_MAX)
		return -EPROTO;
	pthread_mutex_lock(&sandbox->state);
	link = sandbox->link ? agent_link_ref(sandbox->link) : NULL;
	is_repeated = sandbox->greeted;
	pthread_mutex_unlock(&sandbox->state);
	if (is_repeated) {
		agent_link_unref(link);
		return -EPROTO;
	}
	if (link)
		process_table_match(sandbox, link, &in, count);
	agent_link_unref(link);
	pthread_mutex_lock(&sandbox->state);
	sandbox->greeted = true;
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	start_command_resume(sandbox);
	return unpack_done(&in) ? 0 : -EPROTO;
}

static int on_frame(void *arg, const struct frame *frame)
{
	struct sandbox *sandbox = arg;

	return frame->kind == AGENT_HELLO ? on_hello(sandbox, frame)
					  : process_frame(sandbox, frame);
}

/* The reaper is to find out what happened to it. */
static void report_lost(struct sandbox *sandbox)
{
	struct engine *engine = sandbox->engine;

	pthread_mutex_lock(&engine->lock);
	if (engine->lost_count == engine->lost_cap) {
		engine->lost_cap = engine->lost_cap ? engine->lost_cap * 2 : 16;
		engine->lost = realloc(engine->lost, engine->lost_cap * sizeof(*engine->lost));
		if (!engine->lost)
			abort();
	}
	engine->lost[engine->lost_count++] = sandbox_ref(sandbox);
	pthread_cond_broadcast(&engine->work);
	pthread_mutex_unlock(&engine->lock);
}

/* The agent is gone. The verb that ends it knows; else the reaper finds out what happened. Whoever it is
 * ends the processes too, with the reason. */
static void on_lost(void *arg)
{
	struct sandbox *sandbox = arg;
	struct agent_link *link;
	bool ending;

	pthread_mutex_lock(&sandbox->state);
	link = take_ptr(&sandbox->link);
	ending = sandbox->ending;
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	agent_link_unref(link);
	if (!ending)
		report_lost(sandbox);
	sandbox_unref(sandbox);
}

static const struct agent_link_events link_events = {.frame = on_frame, .lost = on_lost};

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

static void greet(struct agent_link *link)
{
	struct buf version = BUF_INIT(8);

	pack_u32(&version, AGENT_VERSION);
	/* If it cannot be sent the link is lost, which whoever waits for the answer will see. */
	(void)!agent_link_send(link, AGENT_ATTACH, 0, version.data, version.len);
	buf_fini(&version);
}

/* Takes up a new link; a reference of it. life is held. */
static int open_link(struct sandbox *sandbox, const struct driver_link *from,
	const struct walls *walls, struct agent_link **ret_link, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->state);
	sandbox->greeted = sandbox->ending = false;
	sandbox->end_reason = END_NONE;
	member_state_reset(sandbox);
	r = agent_link_open(sandbox->engine->loop, from, &link_events, sandbox_ref(sandbox),
		&sandbox->link, err);
	if (r < 0) {
		pthread_mutex_unlock(&sandbox->state);
		sandbox_unref(sandbox);
		return r;
	}
	sandbox->walls = *walls;
	*ret_link = agent_link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

/* Its agent ended while somebody waited: by itself, or with a driver that cannot serve anybody now. */
static int explain_loss(const struct sandbox *sandbox, struct err *err)
{
	int r = driver_check(sandbox->engine->config.driver, err);

	return r < 0 ? r : err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", sandbox->id);
}

int sandbox_link_await(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err)
{
	struct timespec deadline = deadline_after(HELLO_TIMEOUT_MS);
	int r = 0, waited = 0;

	pthread_mutex_lock(&sandbox->state);
	while (sandbox->link && !sandbox->greeted && waited == 0)
		waited = pthread_cond_timedwait(&sandbox->changed, &sandbox->state, &deadline);
	if (!sandbox->link)
		r = explain_loss(sandbox, err);
	else if (!sandbox->greeted)
		r = err_set(err, ERR_TIMEOUT, "the agent of sandbox %s did not answer within %d s",
			sandbox->id, HELLO_TIMEOUT_MS / 1000);
	else
		*ret_link = agent_link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	return r;
}

struct agent_link *sandbox_link_expect_end(struct sandbox *sandbox, enum end_reason reason)
{
	struct agent_link *link;

	pthread_mutex_lock(&sandbox->state);
	sandbox->ending = true;
	sandbox->end_reason = reason;
	link = sandbox->link ? agent_link_ref(sandbox->link) : NULL;
	pthread_mutex_unlock(&sandbox->state);
	return link;
}

void sandbox_link_expect_life(struct sandbox *sandbox)
{
	bool is_lost;

	pthread_mutex_lock(&sandbox->state);
	sandbox->ending = false;
	sandbox->end_reason = END_NONE;
	is_lost = !sandbox->link && sandbox_seems_up(sandbox) && !sandbox->gone;
	pthread_mutex_unlock(&sandbox->state);
	if (is_lost)
		report_lost(sandbox);
}

void sandbox_link_ask_to_end(struct sandbox *sandbox, enum end_reason reason)
{
	unsigned grace_ms = sandbox->engine->config.stop_grace_ms;
	struct timespec deadline = deadline_after(grace_ms + 500);
	struct buf grace = BUF_INIT(8);
	struct agent_link *link;

	link = sandbox_link_expect_end(sandbox, reason);
	if (!link)
		return;
	pack_u32(&grace, grace_ms);
	if (agent_link_send(link, AGENT_SHUTDOWN, 0, grace.data, grace.len) == 0) {
		int waited = 0;

		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link && waited == 0)
			waited = pthread_cond_timedwait(
				&sandbox->changed, &sandbox->state, &deadline);
		pthread_mutex_unlock(&sandbox->state);
	}
	buf_fini(&grace);
	agent_link_unref(link);
}

void sandbox_link_close(struct sandbox *sandbox, const struct termination *how)
{
	struct agent_link *link = sandbox_link_expect_end(sandbox, how->reason);

	start_command_leave(sandbox);
	ready_check_end(sandbox);
	sandbox_network_close(sandbox);
	forwarded_conn_cut_all(sandbox);
	if (link) {
		agent_link_close(link);
		agent_link_unref(link);
		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link)
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
		pthread_mutex_unlock(&sandbox->state);
	}
	process_table_end_all(sandbox, how);
	run_place_give_back(sandbox);
}

int sandbox_link_meet(struct sandbox *sandbox, const struct driver_link *from,
	const struct walls *walls, struct err *err)
{
	struct agent_link *link = NULL;
	int r = open_link(sandbox, from, walls, &link, err);

	if (r == 0) {
		greet(link);
		agent_link_unref(take_ptr(&link));
		r = sandbox_link_await(sandbox, &link, err);
	}
	agent_link_unref(link);
	return r;
}

/* Without waiting: one agent that does not answer must not hold up the start of the daemon. */
int sandbox_adopt(struct sandbox *sandbox, const struct driver_link *from,
	const struct walls *walls, struct err *err)
{
	struct agent_link *link;
	int r = open_link(sandbox, from, walls, &link, err);

	if (r < 0)
		return r;
	run_place_adopt(sandbox);
	r = process_table_adopt(sandbox, link, err);
	if (r == 0)
		r = start_command_adopt(sandbox, err);
	if (r == 0)
		ready_check_begin(sandbox);
	/* It goes on without egress; the next command tries to open it again. */
	if (r == 0 && sandbox_network_open(sandbox, err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err->message);
	if (r == 0)
		greet(link);
	agent_link_unref(link);
	return r;
}
