/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handlers.h"
#include "api/replay.h"
#include "api/sandbox_body.h"
#include "api/start_body.h"
#include "core/network.h"
#include "core/sandbox.h"
#include "http/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define EVENT_BUFFER	   (64u << 10)

static json_t *encode(const struct api *api, struct sandbox *sandbox)
{
	struct sandbox_record record;
	struct walls walls;
	json_t *body;

	sandbox_read(sandbox, &record);
	body = sandbox_to_json(api, &record);
	json_object_set_new(body, "start", start_body_encode(record.start, sandbox));
	sandbox_record_fini(&record);
	json_object_set_new(body, "walls",
		sandbox_read_walls(sandbox, &walls) ? sandbox_walls_to_json(&walls) : json_null());
	return body;
}

static void answer_sandbox(
	struct request *req, const struct api *api, int status, struct sandbox *sandbox)
{
	request_set_object(req, sandbox_id(sandbox));
	request_answer_json(req, status, encode(api, sandbox));
}

/* What a try that was cut short has made, if it came so far. */
static int find_made(struct api *api, const struct sandbox_record *draft, int64_t since_ms,
	struct sandbox **ret_sandbox)
{
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct err ignored;
	int64_t created_ms;

	if (!since_ms || sandbox_get(api->engine, &draft->owner, draft->id, &sandbox, &ignored) < 0)
		return -ENOENT;
	sandbox_read(sandbox, &record);
	created_ms = record.created_at_ms;
	sandbox_record_fini(&record);
	if (created_ms < since_ms) {
		sandbox_unref(sandbox);
		return -ENOENT;
	}
	*ret_sandbox = sandbox;
	return 0;
}

static int create(
	struct request *req, struct api *api, struct sandbox_record *draft, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct replay *replay;
	json_t *made;
	int r = replay_begin(api, req, draft->id, &replay, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (find_made(api, draft, replay_resumed_ms(replay), &sandbox) < 0)
		r = sandbox_create(api->engine, draft, &sandbox, err);
	if (r < 0) {
		replay_end(replay, NULL, err);
		return r;
	}
	made = encode(api, sandbox);
	replay_end(replay, made, NULL);
	request_set_object(req, sandbox_id(sandbox));
	request_answer_json(req, 201, made);
	return 0;
}

HANDLER(sandboxes_create)
{
	struct sandbox_record draft;
	int r;

	if ((r = api_check_ready(context, err)) < 0 ||
		(r = sandbox_body_decode(context, req, &draft, err)) < 0)
		return r;
	r = create(req, context, &draft, err);
	sandbox_record_fini(&draft);
	return r;
}

HANDLER(sandboxes_ensure)
{
	struct api *api = context;
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record draft;
	bool created = false;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = sandbox_body_decode(api, req, &draft, err)) < 0)
		return r;
	r = sandbox_ensure(api->engine, &draft, &sandbox, &created, err);
	sandbox_record_fini(&draft);
	if (r < 0)
		return r;
	answer_sandbox(req, api, created ? 201 : 200, sandbox);
	return 0;
}

/* --- lists --- */

struct listing {
	const struct api *api;
	json_t *sandboxes;
	unsigned limit;
	char last[ID_LEN + 1];
	bool more;
};

static void list_one(const struct sandbox_record *record, void *arg)
{
	struct listing *listing = arg;

	if (json_array_size(listing->sandboxes) == listing->limit) {
		listing->more = true;
		return;
	}
	json_array_append_new(listing->sandboxes, sandbox_to_json(listing->api, record));
	memcpy(listing->last, record->id, sizeof(listing->last));
}

/* "k=v" of the query, cut in two in place. */
static int read_label(const struct request *req, char *text, size_t size,
	struct store_filter *filter, struct err *err)
{
	const char *label = request_query(req, "label");
	char *equals;

	if (!label)
		return 0;
	snprintf(text, size, "%s", label);
	equals = strchr(text, '=');
	if (!equals || strlen(label) >= size)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter label must be a name, = and a value");
	*equals = '\0';
	filter->label_key = text;
	filter->label_value = equals + 1;
	return 0;
}

HANDLER(sandboxes_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {.api = api};
	struct store_filter filter = {.owner = &owner,
		.status = request_query(req, "status"),
		.template_name = request_query(req, "template"),
		.project = request_query(req, "project"),
		.after = request_query(req, "cursor")};
	enum sandbox_status status;
	char label[512];
	uint64_t limit;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0 ||
		(r = read_label(req, label, sizeof(label), &filter, err)) < 0)
		return r;
	if (filter.status && sandbox_status_parse(filter.status, &status) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter status must be creating, running, paused, stopped or error");
	if (filter.after && !id_is_valid(filter.after))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter cursor must be the next_cursor of the page before");
	listing.limit = (unsigned)limit;
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	listing.sandboxes = json_array();
	r = store_sandbox_list(engine_store(api->engine), &filter, list_one, &listing, err);
	if (r < 0) {
		json_decref(listing.sandboxes);
		return r;
	}
	request_answer_json(req, 200,
		json_pack("{s:o, s:o}", "sandboxes", listing.sandboxes, "next_cursor",
			listing.more ? json_string(listing.last) : json_null()));
	return 0;
}

/* --- one --- */

HANDLER(sandboxes_get)
{
	struct api *api = context;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		answer_sandbox(req, api, 200, sandbox);
	return r;
}

HANDLER(sandboxes_patch)
{
	struct api *api = context;
	struct sandbox_patch patch;
	struct sandbox_record record;
	struct sandbox *sandbox;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0)
		return r;
	sandbox_read(sandbox, &record);
	r = sandbox_patch_decode(api, req, record.template_name, &patch, err);
	sandbox_record_fini(&record);
	if (r < 0)
		return r;
	r = sandbox_change(sandbox, sandbox_patch_apply, &patch, err);
	json_decref(patch.network);
	json_decref(patch.start);
	if (r < 0)
		return r;
	if (patch.ports || patch.is_private != FIELD_UNSET)
		atomic_fetch_add(&api->preview_generation, 1);
	answer_sandbox(req, api, 200, sandbox);
	return 0;
}

/* A verb on the sandbox of the path, answered with what it is then. */
static int apply(struct request *req, struct api *api,
	int (*verb)(struct sandbox *sandbox, struct err *err), struct err *err)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		r = verb(sandbox, err);
	if (r == 0)
		answer_sandbox(req, api, 200, sandbox);
	return r;
}

static int stop_by_operator(struct sandbox *sandbox, struct err *err)
{
	return sandbox_stop(sandbox, END_OPERATOR, err);
}

HANDLER(sandboxes_start)
{
	return apply(req, context, sandbox_start, err);
}

HANDLER(sandboxes_stop)
{
	return apply(req, context, stop_by_operator, err);
}

HANDLER(sandboxes_pause)
{
	return apply(req, context, sandbox_pause, err);
}

HANDLER(sandboxes_resume)
{
	return apply(req, context, sandbox_resume, err);
}

HANDLER(sandboxes_reset)
{
	return apply(req, context, sandbox_reset, err);
}

HANDLER(sandboxes_delete)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = sandbox_delete(sandbox, END_OPERATOR, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

HANDLER(sandboxes_purge)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	int r = api_check_ready(api, err);

	if (r == 0)
		r = sandbox_purge(api->engine, &owner, request_param(req, "id"), err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

/* --- figures --- */

static json_t *files_limit_to_json(const struct driver_usage *usage)
{
	return usage->files_limit ? json_integer((json_int_t)usage->files_limit) : json_null();
}

HANDLER(sandboxes_stats)
{
	struct api *api = context;
	struct driver_stats stats = {0};
	struct sluice_counters counters = {0};
	struct sluice *sluice;
	struct driver_usage usage = {0};
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct driver *driver;
	bool runs;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r < 0)
		return r;
	driver = engine_driver(api->engine);
	sandbox_read(sandbox, &record);
	runs = record.status == SANDBOX_RUNNING || record.status == SANDBOX_PAUSED;
	/* One that does not run uses nothing but disk; that it stopped just now is no error either. */
	if (runs && (r = driver->ops->stats(driver, record.id, &stats, err)) == -ENOENT)
		r = 0;
	sluice = network_sluice(sandbox);
	if (sluice)
		sluice_count(sluice, &counters);
	sluice_unref(sluice);
	if (r == 0)
		r = driver->ops->usage(driver, record.id, &usage, err);
	if (r == 0)
		request_answer_json(req, 200,
			json_pack("{s:{s:f, s:f}, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:o, s:b},"
				  " s:{s:I, s:I}, s:{s:I, s:I}}",
				"cpu", "usage_ms", (double)stats.cpu_us / 1000, "limit",
				(double)record.resources.cpu_millis / 1000, "memory",
				"current_bytes", (json_int_t)stats.memory_bytes, "peak_bytes",
				(json_int_t)stats.memory_peak_bytes, "limit_bytes",
				(json_int_t)record.resources.memory_bytes, "disk", "used_bytes",
				(json_int_t)usage.bytes, "files", (json_int_t)usage.files,
				"limit_bytes", (json_int_t)record.resources.disk_bytes,
				"limit_files", files_limit_to_json(&usage), "enforced",
				usage.files_limit > 0, "pids", "current", (json_int_t)stats.pids,
				"limit", (json_int_t)record.resources.pids, "network", "rx_bytes",
				(json_int_t)counters.rx_bytes, "tx_bytes",
				(json_int_t)counters.tx_bytes));
	sandbox_record_fini(&record);
	return r;
}

/* --- events --- */

struct event_feed {
	struct engine *engine;
	struct subscription *subscription;
	struct stream *stream;
};

static void feed_event(void *arg, uint64_t sequence, const char *type, const char *json)
{
	struct event_feed *feed = arg;
	char text[1280];
	int len;

	if (!type) {
		stream_finish(feed->stream);
		return;
	}
	len = snprintf(text, sizeof(text), "id: %llu\nevent: %s\ndata: %s\n\n",
		(unsigned long long)sequence, type, json);
	/* A client that does not read misses events. */
	if (len > 0 && stream_offer(feed->stream, text, (size_t)len) < 0)
		return;
}

static void end_feed(void *arg)
{
	struct event_feed *feed = arg;

	engine_unsubscribe(feed->engine, feed->subscription);
	stream_unref(feed->stream);
	free(feed);
}

HANDLER(sandboxes_events)
{
	struct api *api = context;
	struct sandbox_record record;
	struct event_feed *feed;
	struct sandbox *sandbox;
	char text[128];
	int len, r = api_sandbox(req, api, &sandbox, err);

	if (r < 0)
		return r;
	feed = mem_new(sizeof(*feed));
	feed->engine = api->engine;
	feed->stream = stream_new(EVENT_BUFFER, NULL, NULL);
	stream_set_heartbeat(feed->stream, API_HEARTBEAT_MS);
	sandbox_read(sandbox, &record);
	len = snprintf(text, sizeof(text),
		"event: status\ndata: {\"sandbox\":\"%s\",\"status\":\"%s\"}\n\n", record.id,
		sandbox_status_name(record.status));
	sandbox_record_fini(&record);
	if (stream_offer(feed->stream, text, (size_t)len) < 0)
		stream_finish(feed->stream);
	feed->subscription = engine_subscribe(sandbox, feed_event, feed);
	request_keep(req, feed, end_feed);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
	return 0;
}
