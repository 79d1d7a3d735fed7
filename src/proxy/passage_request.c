/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/passage_request.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/listener.h"
#include "proxy/passage_answer.h"
#include "proxy/passage_relay.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"
#include "proxy/refusal.h"
#include "proxy/rewrite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LATER_MIN_MS 50
#define LATER_MAX_MS 1000

/* --- the head --- */

void passage_request_begin(struct passage *passage)
{
	message_begin(&passage->request, HTTP_REQUEST);
	message_begin(&passage->response, HTTP_RESPONSE);
	passage->state = PASSAGE_HEAD;
	passage->has_answer_begun = passage->is_upgrade = passage->wants_close = false;
	passage->hints = 0;
	passage->moved_ms = clock_steady_ms();
	passage->due_ms = passage->moved_ms + PASSAGE_HEAD_MS;
}

/* Whether the way of the request before is good for this one. */
static bool is_same_way(struct passage *passage, const char digest[DEMAND_DIGEST_LEN])
{
	return passage->app.fd >= 0 && !passage->app.hangs_up && !passage->app.has_ended &&
	       clock_steady_ms() < passage->way.good_until_ms &&
	       passage->way.generation == atomic_load(passage->config->generation) &&
	       !strstr(passage->request.target.at, REWRITE_LINK) &&
	       slice_is(message_get(&passage->request, "Host"), passage->host) &&
	       memcmp(digest, passage->credentials, DEMAND_DIGEST_LEN) == 0;
}

/* Whether its source has more, or wants more, than it may; then it is told so. */
static bool is_too_much(struct passage *passage)
{
	struct proxy_refusal hurries = refusal_source_hurries;

	hurries.wait_s = proxy_pace(passage->config->proxy, passage);
	if (passage->is_excess)
		passage_answer_refuse(passage, &refusal_source_crowds);
	else if (hurries.wait_s)
		passage_answer_refuse(passage, &hurries);
	return passage->is_excess || hurries.wait_s;
}

void passage_request_ask(struct passage *passage)
{
	passage->state = PASSAGE_FINDING;
	proxy_loop_find(passage->loop, passage);
}

/* The head is there. */
static void consider(struct passage *passage)
{
	const struct message *request = &passage->request;
	const struct proxy_refusal *fault = demand_fault(request);
	char digest[DEMAND_DIGEST_LEN];

	if (fault) {
		passage_answer_refuse(passage, fault);
		return;
	}
	passage->is_upgrade = demand_is_upgrade(request);
	passage->wants_close = demand_is_old(request) || !http_should_keep_alive(&request->parser);
	passage->asked_ms = clock_steady_ms();
	if (is_too_much(passage))
		return;
	demand_digest(request, digest);
	passage->is_reused = is_same_way(passage, digest);
	if (passage->is_reused) {
		passage_relay_start(passage);
		return;
	}
	side_close(&passage->app);
	snprintf(passage->host, sizeof(passage->host), "%s", message_get(request, "Host").at);
	memcpy(passage->credentials, digest, sizeof(passage->credentials));
	passage_request_ask(passage);
}

bool passage_request_move(struct passage *passage)
{
	struct side *client = &passage->client;
	ssize_t n = 0;

	if (client->in.len > 0) {
		n = message_feed(&passage->request, client->in.data, client->in.len);
		if (n < 0) {
			passage_answer_refuse(passage,
				n == -EMSGSIZE ? &refusal_head_too_long : &refusal_bad_request);
			return true;
		}
		buf_consume(&client->in, (size_t)n);
	}
	if (n > 0) {
		consider(passage);
		return true;
	}
	if (client->has_ended) {
		passage_end(passage);
		return false;
	}
	if (client->in.len == 0)
		passage->due_ms = clock_steady_ms() + PASSAGE_HEAD_MS;
	return side_receive(client);
}

/* --- finding the way --- */

static struct proxy_visit describe(const struct passage *passage)
{
	struct proxy_visit visit = demand_visit(&passage->request);

	visit.host = passage->host;
	visit.client = passage->address;
	visit.is_misdirected = !dossier_allows_host(passage->dossier, passage->host);
	visit.waited_ms = clock_steady_ms() - passage->asked_ms;
	return visit;
}

void passage_request_find(struct passage *passage)
{
	struct proxy_visit visit = describe(passage);

	proxy_way_fini(&passage->way);
	passage->config->find(passage->config->context, &visit, &passage->way);
	if ((passage->way.kind != PROXY_ANSWER || passage->way.also_wakes) &&
		!proxy_claim(passage->config->proxy, passage))
		passage_answer_prepare(passage, &refusal_key_crowded);
}

static void connect_app(struct passage *passage)
{
	struct side *app = &passage->app;

	app->fd = take_fd(&passage->way.fd);
	app->is_writable = true;
	if (proxy_loop_watch(passage->loop, app) < 0) {
		passage_answer_refuse(passage, &refusal_overloaded);
		return;
	}
	passage_relay_start(passage);
}

/* When to ask again: the longer it waits, the more seldom, so that many who wait cost little. */
static uint64_t later(const struct passage *passage)
{
	uint64_t now = clock_steady_ms(), pause = (now - passage->asked_ms) / 4;

	return now + (pause < LATER_MIN_MS	    ? LATER_MIN_MS
			     : pause > LATER_MAX_MS ? LATER_MAX_MS
						    : pause);
}

bool passage_request_found(struct passage *passage)
{
	passage->state = PASSAGE_HEAD;
	if (passage_is_deserted(passage))
		return false;
	switch (passage->way.kind) {
	case PROXY_GO:
		connect_app(passage);
		break;
	case PROXY_ANSWER:
		passage_answer_found(passage);
		break;
	case PROXY_WAKE:
	case PROXY_LATER:
		passage->state = PASSAGE_LATER;
		passage->due_ms = later(passage);
		proxy_loop_hurry(passage->loop);
		break;
	}
	return true;
}
