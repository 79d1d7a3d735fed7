/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function finds the way of a request, from top to bottom: address (preview_goal.h), sandbox, permission
 * (preview_entry.h), state, port. Who may not see a preview wakes nobody.
 */
#include "api/previews.h"

#include "api/preview_app.h"
#include "api/preview_entry.h"
#include "api/preview_goal.h"
#include "api/preview_pages.h"
#include "base/clock.h"
#include "core/preview.h"
#include "model/text_digest.h"
#include "proxy/proxy.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX (16u * 1024)
#define STALL_MS   60000   /* for bytes that somebody does not take */
#define QUIET_MS   3600000 /* for streams and WebSockets in which nobody says anything */
#define FAILURES   16
#define FAILURE_MS 2000 /* how long a failed start is answered without another try */
#define GOOD_MS                                                                                    \
	5000 /* how long a way is good for more requests: then the token may be gone, or the link */

struct failure {
	char id[ID_LEN + 1];
	uint64_t at_ms;
	char message[320];
};

struct previews {
	struct previews_config config;
	struct proxy *proxy;

	pthread_mutex_t lock;
	struct failure failures[FAILURES];
	size_t next_failure;
};

/* --- permission --- */

static bool is_granted(void *context, const struct proxy_way *way)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct sandbox_port port;
	struct err err;
	bool is_so;

	if (!engine || sandbox_get(engine, NULL, way->key, &sandbox, &err) < 0)
		return false;
	sandbox_read(sandbox, &record);
	is_so = sandbox_port_find(&record, way->port, &port) &&
		preview_entry_is_open(previews->config.api, &port, way);
	sandbox_record_fini(&record);
	return is_so;
}

/* --- state --- */

static bool recent_failure(struct previews *previews, const char *id, char message[320])
{
	bool found = false;

	pthread_mutex_lock(&previews->lock);
	for (size_t i = 0; i < FAILURES && !found; i++) {
		const struct failure *failure = &previews->failures[i];

		found = strcmp(failure->id, id) == 0 &&
			clock_steady_ms() - failure->at_ms < FAILURE_MS;
		if (found)
			memcpy(message, failure->message, sizeof(failure->message));
	}
	pthread_mutex_unlock(&previews->lock);
	return found;
}

static void note_failure(struct previews *previews, const char *id, const char *message)
{
	struct failure *failure;

	pthread_mutex_lock(&previews->lock);
	failure = &previews->failures[previews->next_failure++ % FAILURES];
	failure->at_ms = clock_steady_ms();
	snprintf(failure->id, sizeof(failure->id), "%s", id);
	snprintf(failure->message, sizeof(failure->message), "%s", message);
	pthread_mutex_unlock(&previews->lock);
}

static void wake(void *context, const char *key)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err err;

	if (!engine)
		return;
	if (sandbox_get(engine, NULL, key, &sandbox, &err) < 0 || preview_wake(sandbox, &err) < 0)
		note_failure(previews, key, err.message);
}

/* What browsers and crawlers ask for by themselves is no reason to start anything. */
static bool is_idle_curiosity(const struct proxy_visit *visit)
{
	return strcmp(visit->method, "HEAD") == 0 || strcmp(visit->target, "/favicon.ico") == 0 ||
	       strcmp(visit->target, "/robots.txt") == 0;
}

/* Sandboxes of one owner share their wakes. Nobody may choose a name that shares those of another. */
static uint64_t wake_lane(const struct owner *owner)
{
	char text[sizeof(*owner)];

	snprintf(text, sizeof(text), "%s\n%s", owner->organization, owner->user);
	return text_digest(text);
}

static void lead_to_sleeping(struct previews *previews, const struct proxy_visit *visit,
	const struct sandbox_record *record, struct proxy_way *way)
{
	char message[320];

	way->wake_lane = wake_lane(&record->owner);
	if (recent_failure(previews, record->id, message))
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "wake_failed",
					 .title = "The sandbox does not start",
					 .message = message},
			visit->is_page, way);
	else if (is_idle_curiosity(visit))
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "sandbox_asleep",
					 .title = "The sandbox sleeps",
					 .message = "This request does not wake it."},
			visit->is_page, way);
	else if (visit->is_page) {
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "starting",
					 .title = "Starting the sandbox",
					 .message = "It was asleep. This page reloads by itself.",
					 .reloads = true},
			visit->is_page, way);
		way->also_wakes = true;
	} else {
		way->kind = PROXY_WAKE;
	}
}

/* By path, one connection leads to many apps, and each request says to which. */
static void describe(
	const struct preview_goal *goal, const struct sandbox_port *port, struct proxy_way *way)
{
	memcpy(way->key, goal->id, sizeof(goal->id));
	way->port = port->number;
	way->is_confined = goal->prefix.at;
	way->is_for_all = port->is_public;
	way->prefix_len = port->keeps_prefix ? 0 : goal->prefix.len;
	if (!way->is_confined)
		way->good_until_ms = clock_steady_ms() + GOOD_MS;
	if (way->ends_ms < way->good_until_ms)
		way->good_until_ms = way->ends_ms;
}

static void lead_to_running(struct sandbox *sandbox, const struct proxy_visit *visit,
	const struct sandbox_record *record, struct proxy_way *way)
{
	struct err err;

	if (preview_connect(sandbox, way->port, &way->fd, &err) == 0)
		way->kind = PROXY_GO;
	else
		preview_app_miss(sandbox, record, visit, &err, way);
}

static void lead(struct previews *previews, struct sandbox *sandbox,
	const struct proxy_visit *visit, const struct sandbox_record *record, struct proxy_way *way)
{
	char remediation[96];

	switch (record->status) {
	case SANDBOX_RUNNING:
		lead_to_running(sandbox, visit, record, way);
		break;
	case SANDBOX_ERROR:
		snprintf(remediation, sizeof(remediation), "Start it again: sandlot start %s",
			record->id);
		preview_page_put(&(struct preview_page){.status = 502,
					 .code = "sandbox_error",
					 .title = "The sandbox is in error",
					 .message = record->error_message,
					 .remediation = remediation},
			visit->is_page, way);
		break;
	default:
		lead_to_sleeping(previews, visit, record, way);
	}
}

/* --- the way --- */

static void answer_nowhere(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(
		&(struct preview_page){.status = 421,
			.code = "no_preview_of_that_name",
			.title = "No preview has this name",
			.message = "Previews are at s-<id>-<port> below the preview domain."},
		visit->is_page, way);
}

static void answer_misdirected(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(&(struct preview_page){.status = 421,
				 .code = "server_name_mismatch",
				 .title = "This connection is for another name",
				 .message = "Its TLS handshake (SNI) asked for another server than "
					    "the request.",
				 .remediation = "A client or proxy must name one server in both."},
		visit->is_page, way);
}

/* Pages by path have no origin that could be named (proxy/rewrite.c), so that all may read where it leads. */
static void answer_stray(
	const struct proxy_visit *visit, struct slice prefix, struct proxy_way *way)
{
	way->kind = PROXY_ANSWER;
	way->status = 307;
	way->type = "text/plain";
	way->fields = BUF_INIT(FIELDS_MAX);
	buf_printf(&way->fields, "Location: %.*s%s\r\nAccess-Control-Allow-Origin: *\r\n",
		(int)prefix.len, prefix.at, visit->target);
}

static void answer_unready(const struct proxy_visit *visit, struct proxy_way *way)
{
	preview_page_put(&(struct preview_page){.status = 503,
				 .code = "starting",
				 .title = "Sandlot is starting",
				 .message = "This page reloads by itself.",
				 .reloads = true},
		visit->is_page, way);
}

static void find_in(struct previews *previews, struct engine *engine,
	const struct proxy_visit *visit, const struct preview_goal *goal, struct proxy_way *way)
{
	struct api *api = previews->config.api;
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct sandbox_port port;
	struct err err;
	bool has_port;

	if (sandbox_get(engine, NULL, goal->id, &sandbox, &err) < 0) {
		(void)!preview_entry_check(api, visit, goal, NULL, NULL, way);
		return;
	}
	sandbox_read(sandbox, &record);
	has_port = sandbox_port_find(&record, goal->port, &port);
	if (preview_entry_check(api, visit, goal, &record, has_port ? &port : NULL, way)) {
		describe(goal, &port, way);
		lead(previews, sandbox, visit, &record, way);
	}
	sandbox_record_fini(&record);
}

static void find(void *context, const struct proxy_visit *visit, struct proxy_way *way)
{
	struct previews *previews = context;
	struct api *api = previews->config.api;
	struct engine *engine = atomic_load(&api->engine);
	const struct listener *listener = previews->config.listener;
	struct preview_goal goal;
	struct slice prefix;

	way->generation = atomic_load(&api->preview_generation);
	if (visit->is_misdirected) {
		answer_misdirected(visit, way);
	} else if (preview_goal_find(api->preview_domain, listener, visit, &goal) == 0) {
		if (engine)
			find_in(previews, engine, visit, &goal, way);
		else
			answer_unready(visit, way);
	} else if (preview_goal_find_stray(api->preview_domain, listener, visit, &prefix) == 0) {
		answer_stray(visit, prefix, way);
	} else {
		answer_nowhere(visit, way);
	}
}

static void refuse(const struct proxy_refusal *refusal, bool is_page, struct proxy_way *way)
{
	preview_page_put(&(struct preview_page){.status = refusal->status,
				 .code = refusal->code,
				 .title = refusal->title,
				 .message = refusal->message,
				 .remediation = refusal->remediation,
				 .retry_after_s = refusal->wait_s},
		is_page, way);
}

static void used(void *context, const char *key)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);

	if (engine)
		engine_note_use(engine, key);
}

/* --- life --- */

int previews_open(
	const struct previews_config *config, struct previews **ret_previews, struct err *err)
{
	struct previews *previews = mem_new(sizeof(*previews));
	struct proxy_config proxy = {.listener = config->listener,
		.threads = config->threads,
		.max_workers = config->max_workers,
		.max_connections = config->max_connections,
		.max_per_source = config->max_per_source,
		.max_per_key = config->max_per_sandbox,
		.requests_per_second = config->requests_per_second,
		.answer_ms = config->answer_ms,
		.stall_ms = STALL_MS,
		.quiet_ms = QUIET_MS,
		.context = previews,
		.generation = &config->api->preview_generation,
		.find = find,
		.refuse = refuse,
		.wake = wake,
		.is_granted = is_granted,
		.used = used};
	int r;

	previews->config = *config;
	pthread_mutex_init(&previews->lock, NULL);
	r = proxy_open(&proxy, &previews->proxy, err);
	if (r < 0) {
		previews_close(previews);
		return r;
	}
	*ret_previews = previews;
	return 0;
}

void previews_close(struct previews *previews)
{
	if (!previews)
		return;
	proxy_close(previews->proxy);
	pthread_mutex_destroy(&previews->lock);
	free(previews);
}
