/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function finds the way of a request, from top to bottom: address (preview_target.h), sandbox, permission
 * (preview_visit.h), state, port. Who may not see a preview wakes nobody.
 */
#include "api/preview/previews.h"

#include "api/e2b/e2b_route.h"
#include "api/preview/preview_pages.h"
#include "api/preview/preview_target.h"
#include "api/preview/preview_visit.h"
#include "api/text.h"
#include "base/clock.h"
#include "core/preview/preview.h"
#include "core/preview/preview_diagnosis.h"
#include "core/preview/wake_rules.h"
#include "http/server/server.h"
#include "model/access/owner.h"
#include "proxy/proxy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX (16u * 1024)
#define HOLD_MS	   30000   /* how long a request waits for an app that is starting */
#define STALL_MS   60000   /* for bytes that somebody does not take */
#define QUIET_MS   3600000 /* for streams and WebSockets in which nobody says anything */
#define WAKE_MS	   60000 /* for a wake that a request waits for, of which an owner has few at a time */
#define GOOD_MS                                                                                    \
	5000 /* how long a way is good for more requests: then the token may be gone, or the link */

#define GRANT_OF_API UINT_MAX /* of a way to the API, which judges each request itself */

struct previews {
	struct previews_config config;
	struct proxy *proxy;
	struct wake_rules *wake_rules;
};

/* --- permission --- */

static bool is_granted(void *context, const struct proxy_way *way)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct err err;
	bool is_so;

	if (way->grant_kind == GRANT_OF_API)
		return true;
	if (!engine || sandbox_get(engine, NULL, way->key, &sandbox, &err) < 0)
		return false;
	sandbox_read(sandbox, &record);
	is_so = preview_visit_is_open(engine, &record, way);
	sandbox_record_fini(&record);
	return is_so;
}

/* --- state --- */

static void wake(void *context, const char *key)
{
	struct previews *previews = context;
	struct engine *engine = atomic_load(&previews->config.api->engine);

	if (engine)
		wake_rules_wake(previews->wake_rules, engine, key);
}

static void lead_to_sleeping(struct previews *previews, const struct proxy_visit *visit,
	const struct sandbox_record *record, struct proxy_way *way)
{
	char message[WAKE_RULES_MESSAGE_MAX];

	way->wake_class = way->owner; /* sandboxes of one owner share their wakes */
	switch (wake_rules_judge(previews->wake_rules, record->id, visit->method, visit->target,
		visit->is_page, message)) {
	case WAKE_RULES_FAILED:
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "wake_failed",
					 .title = "The sandbox does not start",
					 .message = message},
			visit->is_page, way);
		break;
	case WAKE_RULES_NOT:
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "sandbox_asleep",
					 .title = "The sandbox sleeps",
					 .message = "This request does not wake it."},
			visit->is_page, way);
		break;
	case WAKE_RULES_TELL:
		preview_page_put(&(struct preview_page){.status = 503,
					 .code = "starting",
					 .title = "Starting the sandbox",
					 .message = "It was asleep. This page reloads by itself.",
					 .reloads = true},
			visit->is_page, way);
		way->also_wakes = true;
		break;
	case WAKE_RULES_WAIT:
		way->kind = PROXY_WAKE;
		break;
	}
}

/* By path, one connection leads to many apps, and each request says to which. */
static void describe(const struct preview_target *target, const struct sandbox_port *port,
	const struct sandbox_record *record, struct proxy_way *way)
{
	memcpy(way->key, record->id, sizeof(record->id));
	way->owner = owner_key(&record->owner);
	way->is_operators = owner_is_operator(&record->owner);
	way->port = port->number;
	way->is_confined = target->prefix.at;
	way->is_for_all = port->is_public;
	way->prefix_len = port->keeps_prefix ? 0 : target->prefix.len;
	if (!way->is_confined)
		way->good_until_ms = clock_steady_ms() + GOOD_MS;
	if (way->ends_ms < way->good_until_ms)
		way->good_until_ms = way->ends_ms;
}

static json_t *ports_to_json(const struct preview_diagnosis *diagnosis)
{
	json_t *ports = json_array();

	for (size_t i = 0; i < diagnosis->listening_count; i++)
		json_array_append_new(ports, json_integer(diagnosis->listening[i]));
	return ports;
}

/* Nothing answers on the port. A browser is told why at once; everything else waits for a while for an app that is
 * starting. */
static void answer_miss(struct sandbox *sandbox, const struct proxy_visit *visit,
	const struct sandbox_record *record, const struct err *why, struct proxy_way *way)
{
	struct preview_question question = {.record = record,
		.port = way->port,
		.why = why,
		.is_for_all = way->is_for_all,
		.wants_page = visit->is_page};
	struct preview_diagnosis diagnosis;
	struct buf output = BUF_INIT(2 * PREVIEW_OUTPUT_MAX);
	json_auto_t *ports = NULL;

	if (visit->waited_ms < HOLD_MS && preview_diagnosis_may_pass(sandbox, &question)) {
		way->kind = PROXY_LATER;
		return;
	}
	preview_diagnosis_make(sandbox, &question, &diagnosis);
	text_put_plain(&output, diagnosis.output, diagnosis.output_len);
	buf_append(&output, "", 1);
	if (diagnosis.knows_listening)
		ports = ports_to_json(&diagnosis);
	preview_page_put(&(struct preview_page){.status = diagnosis.is_starting ? 503 : 502,
				 .code = diagnosis.code,
				 .title = diagnosis.title,
				 .message = diagnosis.message,
				 .remediation = diagnosis.remedy[0] ? diagnosis.remedy : NULL,
				 .reloads = diagnosis.may_pass,
				 .listening = ports,
				 .output = output.len > 1 ? (const char *)output.data : NULL},
		visit->is_page, way);
	buf_fini(&output);
}

static void lead_to_running(struct sandbox *sandbox, const struct proxy_visit *visit,
	const struct sandbox_record *record, struct proxy_way *way)
{
	struct err err;

	if (preview_connect(sandbox, way->port, &way->fd, &err) == 0)
		way->kind = PROXY_GO;
	else
		answer_miss(sandbox, visit, record, &err, way);
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
			.message = "Here are previews, at s-<id>-<port> below the preview domain, "
				   "and not the API.",
			.remediation = "The API and the console have an address of their own: "
				       "http://127.0.0.1:9090, unless sandlotd was given another "
				       "one (--api-bind)."},
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

/* Pages by path have no origin that could be named (proxy/message/rewrite.c), so that all may read where it leads. */
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
	const struct proxy_visit *visit, struct preview_target *target, struct proxy_way *way)
{
	struct api *api = previews->config.api;
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct sandbox_port port;

	preview_visit_find_frame(engine, target, way);
	if (preview_visit_find(api, engine, visit, target, &sandbox) < 0) {
		(void)!preview_visit_check(api, visit, target, NULL, way);
		return;
	}
	sandbox_read(sandbox, &record);
	if (!sandbox_port_find(&record, target->port, &port))
		port = (struct sandbox_port){.number = target->port};
	/* A sandbox without ports has no first one. */
	if (preview_visit_check(api, visit, target, port.number == 0 ? NULL : &record, way)) {
		describe(target, &port, &record, way);
		lead(previews, sandbox, visit, &record, way);
	}
	sandbox_record_fini(&record);
}

/* A call into a sandbox by a protocol that the API speaks: it goes there, as a request of the same client. */
static void lead_to_api(struct previews *previews, struct engine *engine,
	const struct proxy_visit *visit, const struct e2b_route *route, struct proxy_way *way)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	struct err err;

	if (sandbox_get(engine, NULL, route->id, &sandbox, &err) < 0) {
		e2b_route_refuse(route, way);
		return;
	}
	sandbox_read(sandbox, &record);
	memcpy(way->key, record.id, sizeof(record.id));
	way->owner = owner_key(&record.owner);
	way->is_operators = owner_is_operator(&record.owner);
	way->port = server_port(previews->config.server);
	way->is_for_all = true;
	way->ends_ms = UINT64_MAX;
	way->grant_kind = GRANT_OF_API;
	if (record.status == SANDBOX_PAUSED) {
		e2b_route_refuse(route, way);
	} else if (server_connect(previews->config.server, visit->client, &way->fd, &err) < 0) {
		answer_unready(visit, way);
	} else {
		e2b_route_lead(route, visit, way);
		way->kind = PROXY_GO;
	}
	sandbox_record_fini(&record);
}

static void find(void *context, const struct proxy_visit *visit, struct proxy_way *way)
{
	struct previews *previews = context;
	struct api *api = previews->config.api;
	struct engine *engine = atomic_load(&api->engine);
	const struct listener *listener = previews->config.listener;
	struct preview_target target;
	struct e2b_route route;
	struct slice prefix;

	way->generation = atomic_load(&api->preview_generation);
	if (visit->is_misdirected) {
		answer_misdirected(visit, way);
	} else if (engine && e2b_route_read(visit, api->preview_domain, &route)) {
		lead_to_api(previews, engine, visit, &route, way);
	} else if (preview_target_find(api->preview_domain, listener, visit, &target) == 0) {
		if (engine)
			find_in(previews, engine, visit, &target, way);
		else
			answer_unready(visit, way);
	} else if (preview_target_find_stray(api->preview_domain, listener, visit, &prefix) == 0) {
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
		.wake_ms = WAKE_MS,
		.context = previews,
		.generation = &config->api->preview_generation,
		.find = find,
		.refuse = refuse,
		.wake = wake,
		.is_granted = is_granted,
		.used = used};
	int r;

	previews->config = *config;
	previews->wake_rules = wake_rules_new();
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
	wake_rules_free(previews->wake_rules);
	free(previews);
}
