/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both connections are watched edge by edge: what may be read or written is remembered until the kernel says
 * otherwise. `move` does all that can be done with that, and is called after everything that happened. What that is
 * depends on the state: see the headers of its parts.
 */
#include "proxy/passage.h"

#include "base/clock.h"
#include "http/listener.h"
#include "proxy/passage_answer.h"
#include "proxy/passage_relay.h"
#include "proxy/passage_request.h"
#include "proxy/passage_tunnel.h"
#include "proxy/proxy_loop.h"
#include "proxy/refusal.h"

#include <stdio.h>
#include <sys/epoll.h>

#define IDLE_MS	   75000 /* between two requests */
#define ROUNDS_MAX 16	 /* then others have their turn */

/* --- what happens --- */

void passage_end(struct passage *passage)
{
	side_close(&passage->client);
	side_close(&passage->app);
	passage->state = PASSAGE_OVER;
}

bool passage_is_deserted(struct passage *passage)
{
	struct side *client = &passage->client;

	if (!passage->request.is_complete || !client->hangs_up)
		return false;
	while (side_receive(client))
		;
	return client->has_ended && client->in.len == 0;
}

/* Does what can be done now. */
static void move(struct passage *passage)
{
	bool moved = true;

	for (int rounds = 0; moved && rounds < ROUNDS_MAX; rounds++) {
		switch (passage->state) {
		case PASSAGE_HEAD:
			moved = passage_request_move(passage);
			break;
		case PASSAGE_RELAY:
			moved = passage_relay_move(passage);
			break;
		case PASSAGE_TUNNEL:
			moved = passage_tunnel_move(passage);
			break;
		case PASSAGE_LAST:
			moved = passage_answer_move(passage);
			break;
		case PASSAGE_FINDING:
		case PASSAGE_LATER:
		case PASSAGE_OVER:
			moved = false;
			break;
		}
	}
	if (passage->state == PASSAGE_OVER) {
		proxy_loop_drop(passage->loop, passage);
		return;
	}
	side_release(&passage->client);
	side_release(&passage->app);
	if (moved) {
		proxy_loop_again(passage->loop, &passage->client);
		proxy_loop_again(passage->loop, &passage->app);
	}
}

void passage_cut(struct passage *passage)
{
	passage_end(passage);
	proxy_loop_drop(passage->loop, passage);
}

void passage_ready(struct side *side, uint32_t events)
{
	struct passage *passage = side->passage;

	if (passage->state == PASSAGE_OVER)
		return;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		side->is_readable = true;
	side->hangs_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (events & EPOLLOUT)
		side->is_writable = true;
	/* An app that hangs up or speaks between two requests leaves a connection that is of no use. */
	if (side == &passage->app && passage->state == PASSAGE_HEAD) {
		if (side->is_readable)
			side_close(side);
		return;
	}
	if (passage->state != PASSAGE_FINDING)
		move(passage);
}

void passage_found(struct passage *passage)
{
	if (passage_request_found(passage))
		move(passage);
	else
		passage_cut(passage);
}

/* --- what does not happen --- */

/* How long nothing may move. */
static uint64_t patience(const struct passage *passage)
{
	const struct proxy_config *config = passage->config;
	bool is_stalled = passage->client.out.len > 0 || passage->app.out.len > 0;

	switch (passage->state) {
	case PASSAGE_HEAD:
		return passage->is_excess ? PASSAGE_HEAD_MS : IDLE_MS;
	case PASSAGE_RELAY:
	case PASSAGE_TUNNEL:
		return is_stalled		   ? config->stall_ms
		       : passage->has_answer_begun ? config->quiet_ms
						   : config->answer_ms;
	case PASSAGE_LAST:
		return PASSAGE_HEAD_MS;
	default:
		return UINT64_MAX;
	}
}

/* Whether what opened the way does so still; asked only when that may have changed. */
static bool is_granted(struct passage *passage)
{
	const struct proxy_config *config = passage->config;
	uint64_t generation = atomic_load(config->generation);

	if (passage->way.generation != generation &&
		!config->is_granted(config->context, &passage->way))
		return false;
	passage->way.generation = generation;
	return true;
}

/* What a client cannot put off by sending a byte now and then. */
static bool is_due(struct passage *passage, uint64_t now_ms)
{
	switch (passage->state) {
	case PASSAGE_HEAD:
		return passage->client.in.len > 0 && now_ms >= passage->due_ms;
	case PASSAGE_LAST:
		return passage->has_said_end && now_ms >= passage->due_ms;
	case PASSAGE_RELAY:
	case PASSAGE_TUNNEL:
		return now_ms >= passage->way.ends_ms || !is_granted(passage);
	default:
		return false;
	}
}

/* Whom it waits for in vain, if somebody can still be told. */
static const struct proxy_refusal *find_fault(const struct passage *passage)
{
	if (passage->state != PASSAGE_RELAY || passage->has_answer_begun ||
		passage->client.out.len > 0)
		return NULL;
	return passage->request.is_complete || passage->app.out.len > 0 ? &refusal_answer_timeout
									: &refusal_request_timeout;
}

void passage_tick(struct passage *passage, uint64_t now_ms)
{
	const struct proxy_refusal *fault = find_fault(passage);
	bool is_over;

	if (passage->state == PASSAGE_LATER && now_ms >= passage->due_ms) {
		passage_request_ask(passage);
		return;
	}
	is_over = is_due(passage, now_ms);
	if (now_ms - passage->moved_ms < patience(passage) && !is_over)
		return;
	if (fault && !is_over) {
		passage_answer_refuse(passage, fault);
		move(passage);
		return;
	}
	passage_cut(passage);
}

/* --- life --- */

bool passage_is_idle(const struct passage *passage)
{
	return passage->state == PASSAGE_HEAD;
}

struct passage *passage_open(
	struct proxy_loop *loop, const struct proxy_config *config, int fd, const char *address)
{
	struct passage *passage = mem_new(sizeof(*passage));

	passage->loop = loop;
	passage->config = config;
	side_init(&passage->client, passage, fd);
	side_init(&passage->app, passage, -1);
	passage->way.fd = -1;
	snprintf(passage->address, sizeof(passage->address), "%s", address);
	passage_request_begin(passage);
	return passage;
}

void passage_free(struct passage *passage)
{
	side_close(&passage->client);
	side_close(&passage->app);
	proxy_way_fini(&passage->way);
	message_fini(&passage->request);
	message_fini(&passage->response);
	dossier_unref(passage->dossier);
	free(passage);
}
