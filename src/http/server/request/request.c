/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/request.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/owner_memory.h"
#include "http/server/connection.h"
#include "http/server/loop.h"
#include "http/server/request/body.h"
#include "http/server/request/event_filter.h"
#include "http/server/request/request_private.h"
#include "http/server/request/request_worker.h"
#include "http/server/request/response.h"
#include "http/server/request/upload.h"
#include "http/server/server_private.h"
#include "http/stream.h"
#include "http/stream_private.h"
#include "http/websocket/websocket_private.h"

#include <assert.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/epoll.h>

struct request *request_new(
	struct loop *loop, struct MHD_Connection *connection, int sock, const char *raw_target)
{
	struct request *req = mem_new(sizeof(*req));

	atomic_init(&req->refs, 1);
	pthread_mutex_init(&req->lock, NULL);
	req->loop = loop;
	req->server = server_ref(loop_server(loop));
	req->connection = connection;
	req->sock = sock;
	req->at_head = true;
	req->begun_us = clock_steady_us();
	req->raw_target = arena_strndup(&req->arena, raw_target, strlen(raw_target));
	req->path = arena_strndup(&req->arena, raw_target, strcspn(raw_target, "?"));
	req->body = BUF_INIT(REQUEST_BODY_MAX); /* or less, when the route is known */
	req->answer.fd = -1;
	req->upload.fd = -1;
	return req;
}

struct request *request_ref(struct request *req)
{
	atomic_fetch_add(&req->refs, 1);
	return req;
}

void request_unref(struct request *req)
{
	if (!req || atomic_fetch_sub(&req->refs, 1) != 1)
		return;
	/* First: a stream that was never sent tells its producer now, which may be a kept object. */
	answer_fini(&req->answer);
	event_filter_free(req->event_filter);
	while (req->kept) {
		struct kept *kept = req->kept;

		req->kept = kept->next;
		kept->release(kept->object);
	}
	upload_fini(req);
	json_decref(req->json);
	buf_fini(&req->body);
	arena_fini(&req->arena);
	owner_memory_give_back(req->server->memory, req->memory_key, req->memory_bytes);
	pthread_mutex_destroy(&req->lock);
	connection_unref(req->client);
	server_unref(req->server);
	free(req);
}

bool request_hold_memory(struct request *req, uint64_t bytes)
{
	if (bytes <= OWNER_MEMORY_SMALL)
		return true;
	if (req->memory_bytes == 0)
		req->memory_key = server_owner_key(req->server, &req->principal);
	if (!owner_memory_take(req->server->memory, req->memory_key, bytes))
		return false;
	req->memory_bytes += bytes;
	return true;
}

int request_refuse_memory(struct err *err)
{
	return err_explain(err, ERR_RATE, "too_much_unread",
		"read the answers of other requests, or close their connections",
		"too many of your answers and bodies wait in memory");
}

static bool is_cut(const struct request *req)
{
	return req->is_broken || (req->client_gone && req->phase == PHASE_SENDING) ||
	       atomic_load(&req->server->aborting);
}

bool request_suspend_locked(struct request *req)
{
	assert(!req->suspended);
	if (is_cut(req))
		return false;
	req->suspended = true;
	MHD_suspend_connection(req->connection);
	return true;
}

bool request_suspend(struct request *req)
{
	bool done;

	pthread_mutex_lock(&req->lock);
	done = request_suspend_locked(req);
	pthread_mutex_unlock(&req->lock);
	return done;
}

/* A resume must meet exactly one suspend: the library cancels the next one for a resume too many. */
void request_wake_locked(struct request *req)
{
	if (!req->suspended)
		return;
	req->suspended = false;
	MHD_resume_connection(req->connection);
	loop_wake(req->loop);
}

void request_wake(struct request *req)
{
	pthread_mutex_lock(&req->lock);
	request_wake_locked(req);
	pthread_mutex_unlock(&req->lock);
}

bool request_is_cut(struct request *req)
{
	bool cut;

	pthread_mutex_lock(&req->lock);
	cut = is_cut(req);
	pthread_mutex_unlock(&req->lock);
	return cut;
}

/* Takes the function to call for a held request whose client is gone; it is called only once. */
static void (*take_gone(struct request *req))(void *arg)
{
	void (*gone)(void *arg) = req->held && !req->released ? req->gone : NULL;

	if (gone)
		req->gone = NULL;
	return gone;
}

bool request_yields(struct request *req)
{
	bool yields;

	pthread_mutex_lock(&req->lock);
	yields = req->yields && req->held && !req->released && req->gone;
	pthread_mutex_unlock(&req->lock);
	return yields;
}

void request_yield(struct request *req)
{
	void (*gone)(void *arg);

	pthread_mutex_lock(&req->lock);
	gone = req->yields ? take_gone(req) : NULL;
	pthread_mutex_unlock(&req->lock);
	if (gone)
		gone(req->gone_arg);
}

void request_hang_up(struct request *req)
{
	void (*gone)(void *arg);

	pthread_mutex_lock(&req->lock);
	req->client_gone = true;
	/* Elsewhere the connection goes on: a handler runs to its end, a body may still be whole. */
	if (req->phase == PHASE_SENDING)
		request_wake_locked(req);
	gone = take_gone(req);
	pthread_mutex_unlock(&req->lock);
	if (gone)
		gone(req->gone_arg);
}

static void release_ref(void *arg)
{
	request_unref(arg);
}

static void pump_ready(void *arg, uint32_t events)
{
	struct request *req = arg;

	(void)events;
	pthread_mutex_lock(&req->lock);
	/* Not while finish() runs, whose wait is for something else. */
	if (req->phase == PHASE_PUMP || req->phase == PHASE_SENDING)
		request_wake_locked(req);
	pthread_mutex_unlock(&req->lock);
}

static void heartbeat_due(void *arg)
{
	struct request *req = arg;
	uint64_t due = stream_beat(req->answer.stream), now = clock_steady_ms();

	pthread_mutex_lock(&req->lock);
	if (due && req->heartbeat)
		timer_set(req->heartbeat, due > now ? due - now : 0);
	pthread_mutex_unlock(&req->lock);
}

void request_open_heartbeat(struct request *req)
{
	req->heartbeat =
		timer_open(req->server->poller, heartbeat_due, release_ref, request_ref(req));
}

/* The lock is held. */
static int watch_pump(struct request *req, int fd, uint32_t events)
{
	int r;

	events |= EPOLLONESHOT;
	if (req->pump_watch) {
		watch_set(req->pump_watch, events);
		return 0;
	}
	r = watch_open(req->server->poller, fd, events, pump_ready, release_ref, request_ref(req),
		&req->pump_watch, NULL);
	if (r < 0)
		request_unref(req);
	return r;
}

void request_wake_when(struct request *req, int fd, uint32_t events)
{
	int r = 0;

	pthread_mutex_lock(&req->lock);
	if (req->suspended)
		r = watch_pump(req, fd, events);
	if (r < 0) {
		log_warning("request %s: cannot wait for a descriptor: %s", req->id, strerror(-r));
		req->is_broken = true;
		request_wake_locked(req);
	}
	pthread_mutex_unlock(&req->lock);
}

/*
 * The answer is there while the client still sends: a short rest is read and dropped, so that the
 * connection can be used again; for a long one the answer goes out at once and the connection ends. Nothing is read
 * of a stranger's, who may have announced a body in order to be waited for.
 */
void request_deliver_early_locked(struct request *req)
{
	uint64_t size = req->announced.size;

	if (!req->announced.present ||
		(size != GUARD_UNKNOWN_SIZE && size - req->received <= REQUEST_DROP_MAX &&
			connection_is_known(req->client))) {
		req->phase = PHASE_DROP;
	} else {
		req->phase = PHASE_LINGER;
		req->is_broken = !response_write(req, req->sock);
	}
	request_wake_locked(req);
}

void request_conclude(struct request *req)
{
	const struct server_config *config = &req->server->config;
	const struct route *route = req->match.route;

	if (req->answer.kind == ANSWER_NONE) {
		struct err err;

		err_set(&err, ERR_INTERNAL, "%s %s gave no answer", route->method, route->path);
		request_answer_error(req, &err);
	}
	if (config->account && request_action(req)[0] && req->is_known)
		config->account(config->context, req);
	if (req->translate || req->retell)
		request_redirect_translate(req);
	request_deliver(req);
}

void request_deliver(struct request *req)
{
	pthread_mutex_lock(&req->lock);
	if (req->connection && !req->at_head && !req->body_done) {
		request_deliver_early_locked(req);
	} else if (req->connection) {
		req->phase = PHASE_ANSWER;
		request_wake_locked(req);
	}
	pthread_mutex_unlock(&req->lock);
}

static void detach(struct request *req)
{
	void (*gone)(void *arg);
	enum request_phase phase;

	/* Before the timer is closed: a bound stream may set it again. */
	if (req->sending)
		stream_unbind(req->sending);
	pthread_mutex_lock(&req->lock);
	phase = req->phase;
	req->phase = PHASE_OVER;
	req->connection = NULL;
	req->sending = NULL;
	req->sock = -1;
	watch_close(take_ptr(&req->pump_watch));
	timer_close(take_ptr(&req->heartbeat));
	gone = take_gone(req);
	pthread_mutex_unlock(&req->lock);
	if (gone)
		gone(req->gone_arg);
	if (phase == PHASE_PUMP)
		request_worker_finish(req, false);
	upload_cut(req);
}

void request_end(struct request *req)
{
	connection_end(req->client);
	detach(req);
	server_remove_request(req->server, req);
	request_unref(req);
}

const struct guard *request_guard(const struct request *req)
{
	return req->client->is_unix ? req->server->local_guard : req->server->guard;
}

/* What src/api calls. */

const char *request_trace(const struct request *req)
{
	return req->trace;
}

const char *request_trace_parent(const struct request *req)
{
	return req->trace_parent;
}

const char *request_route(const struct request *req)
{
	return req->match.route ? req->match.route->path : "";
}

const char *request_id(const struct request *req)
{
	return req->id;
}

void *request_context(const struct request *req)
{
	return req->server->config.context;
}

const struct principal *request_principal(const struct request *req)
{
	return &req->principal;
}

const char *request_param(const struct request *req, const char *name)
{
	for (unsigned i = 0; i < req->match.param_count; i++)
		if (strcmp(req->match.params[i].name, name) == 0)
			return req->match.params[i].value;
	return NULL;
}

const char *request_path(const struct request *req)
{
	return req->path;
}

const char *request_query(const struct request *req, const char *name)
{
	return target_query(&req->target, name);
}

const char *request_header(const struct request *req, const char *name)
{
	return headers_get(&req->headers, name);
}

void request_set_object(struct request *req, const char *object)
{
	req->object = arena_strndup(&req->arena, object, strlen(object));
}

void request_set_detail(struct request *req, const char *detail)
{
	req->detail = arena_strndup(&req->arena, detail, strlen(detail));
}

void request_set_action(struct request *req, const char *action)
{
	req->action = action;
}

const char *request_action(const struct request *req)
{
	const char *action = req->match.route ? req->match.route->action : NULL;

	if (req->action)
		action = req->action;
	return action ? action : "";
}

const char *request_object(const struct request *req)
{
	return req->object ? req->object : "";
}

const char *request_detail(const struct request *req)
{
	return req->detail ? req->detail : "";
}

const char *request_peer(const struct request *req)
{
	return req->peer;
}

const char *request_error_code(const struct request *req)
{
	return req->error_code;
}

int request_status(const struct request *req)
{
	return req->answer.status;
}

const json_t *request_body(const struct request *req)
{
	return req->json;
}

const void *request_body_bytes(const struct request *req, size_t *ret_len)
{
	*ret_len = req->body.len;
	return req->body.data;
}

int request_body_value(const struct request *req, json_t **ret_value, struct err *err)
{
	return body_parse_any((const char *)req->body.data, req->body.len, ret_value, err);
}

const char *request_method(const struct request *req)
{
	return req->match.route->method;
}

/* Adds to the list of that name, unless it is not UTF-8. */
static void add_to_list(json_t *lists, const char *name, const char *text)
{
	json_t *list = json_object_get(lists, name), *value = json_string(text);

	if (value && !list) {
		list = json_array();
		if (json_object_set_new(lists, name, list) < 0)
			list = NULL;
	}
	if (list && value)
		json_array_append(list, value);
	json_decref(value);
}

json_t *request_headers_to_json(const struct request *req)
{
	json_t *lists = json_object();

	for (unsigned i = 0; i < req->headers.count; i++)
		add_to_list(lists, req->headers.list[i].name, req->headers.list[i].value);
	return lists;
}

json_t *request_query_to_json(const struct request *req)
{
	json_t *lists = json_object();

	for (unsigned i = 0; i < req->target.param_count; i++)
		add_to_list(lists, req->target.params[i].name, req->target.params[i].value);
	return lists;
}

uint64_t request_body_size(const struct request *req)
{
	return req->announced.size;
}

void request_keep(struct request *req, void *object, void (*release)(void *object))
{
	struct kept *kept = arena_alloc(&req->arena, sizeof(*kept));

	*kept = (struct kept){req->kept, object, release};
	req->kept = kept;
}

void request_evict(struct request *req, const char *id)
{
	struct server *server = req->server;

	atomic_fetch_add(&server->evictions, 1);
	connection_evict(server, id, req);
	/* After the requests: one that is turned into a WebSocket just now is cut as either. */
	websocket_evict(&server->websockets, id);
}

const struct answer_stats *request_server_stats(
	const struct request *req, unsigned *ret_connections)
{
	*ret_connections = atomic_load(&req->server->connections);
	return &req->server->stats;
}

int request_identify(struct request *req, const struct credential *credential, struct err *err)
{
	assert(req->match.route->flags & ROUTE_OPEN);
	req->credential = *credential;
	return request_worker_identify(req, err);
}

void request_receive_to_fd(struct request *req, int fd, request_finish_fn finish, void *arg)
{
	assert(req->match.route->flags & ROUTE_RAW_BODY);
	req->upload.fd = fd;
	req->upload.finish = finish;
	req->upload.arg = arg;
}

ssize_t request_read(struct request *req, void *data, size_t size)
{
	assert(req->match.route->flags & ROUTE_RAW_BODY);
	return upload_read(req, data, size);
}

static void keep_open(struct request *req, void (*gone)(void *arg), void *arg, bool yields)
{
	pthread_mutex_lock(&req->lock);
	assert(!req->held);
	req->held = true;
	req->yields = yields;
	req->gone = gone;
	req->gone_arg = arg;
	pthread_mutex_unlock(&req->lock);
	request_ref(req);
}

void request_hold(struct request *req, void (*gone)(void *arg), void *arg)
{
	keep_open(req, gone, arg, false);
}

void request_hold_until_close(struct request *req, void (*gone)(void *arg), void *arg)
{
	keep_open(req, gone, arg, true);
	/* Either server_close() sees the request, or we see that it is closing. */
	if (atomic_load(&req->server->closing))
		request_yield(req);
}

void request_release(struct request *req)
{
	bool returned;

	pthread_mutex_lock(&req->lock);
	assert(req->held && !req->released);
	req->released = true;
	returned = req->returned;
	pthread_mutex_unlock(&req->lock);
	/* Else the handler is still in its last lines, and concludes when it returns. */
	if (returned)
		request_conclude(req);
	request_unref(req);
}

void request_continue(struct request *req, request_again_fn again, void *arg)
{
	bool returned;

	pthread_mutex_lock(&req->lock);
	assert(req->held && !req->released && !req->again);
	req->again = again;
	req->again_arg = arg;
	returned = req->returned;
	pthread_mutex_unlock(&req->lock);
	/* Else the handler is still in its last lines, and it goes on when that returns. */
	if (returned)
		request_worker_again(req);
	request_unref(req);
}

void request_release_error(struct request *req, const struct err *err)
{
	request_answer_error(req, err);
	request_release(req);
}
