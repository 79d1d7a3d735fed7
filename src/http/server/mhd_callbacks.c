/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of a connection, as libmicrohttpd drives it.
 *
 * The library calls once for the headers, then for every piece of the body, then once more at its
 * end, and takes an answer only at the first and at the last of these. An answer at the first one makes
 * it close the connection, even if there is no body; so whatever can wait waits for the end. A call
 * that ends with the connection suspended is repeated after the resume.
 */
#include "http/server/mhd_callbacks.h"

#include "base/log.h"
#include "http/server/connection.h"
#include "http/server/request/request_answer.h"
#include "http/server/request/request_worker.h"
#include "http/server/request/response.h"
#include "http/server/request/upload.h"
#include "http/server/server_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* On a connection whose owner is known, a JSON body up to this size comes with the headers or right behind them, and
 * costs little to hold for a sender who may turn out to be another; in all other cases the token is looked up first. */
#define UNKNOWN_BODY_MAX (16u * 1024)
#define LINGER_MAX	 (32u * 1024 * 1024)

static struct connection *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info->socket_context;
}

static void *open_request(void *arg, const char *target, struct MHD_Connection *connection)
{
	struct loop *loop = arg;
	struct connection *client = client_of(connection);
	struct request *req = request_new(loop, connection, client->sock, target);

	req->client = connection_ref(client);
	memcpy(req->peer, client->peer, sizeof(req->peer));
	req->source = client->source;
	connection_begin(client, req);
	server_add_request(req->server, req);
	return req;
}

static bool is_good_id(const char *id)
{
	size_t len = id ? strlen(id) : 0;

	for (size_t i = 0; i < len; i++)
		if (!(id[i] >= '0' && id[i] <= '9') &&
			!((id[i] | 32) >= 'a' && (id[i] | 32) <= 'z') && !strchr("._-", id[i]))
			return false;
	return len > 0 && len <= REQUEST_ID_MAX;
}

/* The client's, or a new one: a counter under a mixing function, unique and hard to guess. */
static void name_request(struct request *req)
{
	const char *given = headers_get(&req->headers, "X-Request-ID");
	uint64_t x = req->server->id_seed +
		     atomic_fetch_add(&req->server->id_next, 1) * UINT64_C(0x9e3779b97f4a7c15);

	if (is_good_id(given)) {
		strcpy(req->id, given);
		return;
	}
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	snprintf(req->id, sizeof(req->id), "%016llx", (unsigned long long)(x ^ x >> 31));
}

/* What is not of the form, or all zeros, is no trace. */
static bool is_traceparent(const char *text)
{
	static const char digits[] = "0123456789abcdef";

	return text && strlen(text) == TRACE_MAX - 1 && strncmp(text, "00-", 3) == 0 &&
	       strspn(text + 3, digits) == 32 && text[35] == '-' &&
	       strspn(text + 36, digits) == 16 && text[52] == '-' &&
	       strspn(text + 53, digits) == 2 && strspn(text + 3, "0") < 32 &&
	       strspn(text + 36, "0") < 16;
}

/*
 * The place of the request in a trace (W3C Trace Context): that of the sender, with a span of our own. Without one it is the
 * first of a trace, where traces are collected.
 */
static void read_trace(struct request *req)
{
	const char *parent = headers_get(&req->headers, "traceparent");
	uint64_t span = req->server->id_seed ^ (req->begun_us * UINT64_C(0x9e3779b97f4a7c15)) ^
			(uint64_t)(uintptr_t)req;
	uint64_t random[2];

	if (!is_traceparent(parent)) {
		if (!req->server->config.traced ||
			getrandom(random, sizeof(random), 0) != sizeof(random))
			return;
		snprintf(req->trace, sizeof(req->trace), "00-%016llx%016llx-%016llx-01",
			(unsigned long long)random[0], (unsigned long long)(random[1] | 1),
			(unsigned long long)(span ? span : 1));
		return;
	}
	memcpy(req->trace_parent, parent + 36, 16);
	snprintf(req->trace, sizeof(req->trace), "00-%.32s-%016llx-%.2s", parent + 3,
		(unsigned long long)(span ? span : 1), parent + 53);
}

static int find_route(struct request *req, const char *method, struct err *err)
{
	const struct server *server = req->server;
	int r;

	req->method = method_parse(method);
	r = target_parse(req->raw_target, &req->arena, &req->target, err);
	if (r == 0)
		r = guard_check_source(request_guard(req), &req->headers, req->method, err);
	if (r == 0)
		r = guard_check_server_name(&req->headers, req->client->tls_peer, err);
	if (r == 0)
		r = router_find(req->server->router, req->method, &req->target, &req->arena,
			&req->match, err);
	if (r < 0 && err->kind == ERR_NOT_FOUND && server->config.pages &&
		(req->method == METHOD_GET || req->method == METHOD_HEAD)) {
		req->match = (struct router_match){.route = server->config.pages};
		r = 0;
	}
	if (r < 0 && err->kind == ERR_METHOD)
		request_answer_header(req, "Allow", req->match.allow);
	if (r == 0 && req->target.repeated && !(req->match.route->flags & ROUTE_REPEATED_QUERY))
		return err_set(err, ERR_INVALID, "the query parameter %.64s is given twice",
			req->target.repeated);
	return r;
}

/* A misspelt parameter that is passed over would do what nobody asked for. */
static int check_query(const struct request *req, struct err *err)
{
	const struct server_config *config = &req->server->config;
	const struct route *route = req->match.route;

	if (route->flags & ROUTE_FREE_QUERY)
		return 0;
	for (unsigned i = 0; config->takes_query && i < req->target.param_count; i++) {
		const char *name = req->target.params[i].name;

		if (!config->takes_query(route, name) &&
			!((route->flags & ROUTE_TICKET) && strcmp(name, "ticket") == 0) &&
			!((route->flags & ROUTE_MEMBER) && strcmp(name, "member") == 0))
			return err_explain(err, ERR_INVALID, "unknown_parameter",
				"the parameters are listed in /openapi.json",
				"unknown query parameter %.64s", name);
	}
	return 0;
}

/* Everything that the headers tell, but for whose the credential is. */
static int check_head(struct request *req, const struct request_line *line, struct err *err)
{
	struct err refusal;
	int r;

	/* Until it is known otherwise there may be a body that no one can delimit. */
	req->announced = (struct guard_body){.present = true, .size = GUARD_UNKNOWN_SIZE};
	r = headers_read(req->connection, line, &req->arena, &req->headers, err);
	name_request(req);
	read_trace(req);
	if (r == 0)
		r = guard_read_framing(&req->headers, strcmp(line->version, "HTTP/1.0") == 0,
			&req->announced, err);
	if (r == 0)
		r = find_route(req, line->method, err);
	if (r == 0 && atomic_load(&req->server->closing))
		r = err_set(err, ERR_UNAVAILABLE, "the server is stopping");
	if (r < 0)
		return r;
	if (!(req->match.route->flags & ROUTE_OPEN)) {
		r = guard_read_credential(request_guard(req), &req->headers, &req->target,
			req->match.route->flags, req->method, &req->arena, &req->credential, err);
		if (r < 0)
			return r;
		req->credential.path = req->path;
	}
	req->body.max = guard_body_max(req->match.route->flags);
	r = check_query(req, &refusal);
	if (r == 0)
		r = guard_check_body(
			req->match.route->flags, &req->headers, &req->announced, &refusal);
	if (r < 0 && (req->match.route->flags & ROUTE_OPEN)) {
		*err = refusal;
		return r;
	}
	if (r < 0) {
		req->refusal = arena_alloc(&req->arena, sizeof(refusal));
		*req->refusal = refusal;
	}
	return 0;
}

static void set_phase(struct request *req, enum request_phase phase)
{
	pthread_mutex_lock(&req->lock);
	req->phase = phase;
	pthread_mutex_unlock(&req->lock);
}

/* On to the body. */
static bool leave_head(struct request *req)
{
	pthread_mutex_lock(&req->lock);
	req->at_head = false;
	pthread_mutex_unlock(&req->lock);
	return true;
}

static bool queue_answer(struct request *req, struct MHD_Connection *connection)
{
	set_phase(req, PHASE_SENDING);
	return response_queue(req, connection);
}

/* Answers before the body: now, and then the connection ends; or after a short body was dropped. */
static bool answer_at_head(struct request *req, struct MHD_Connection *connection)
{
	if (req->announced.present && req->announced.wants_continue)
		return queue_answer(req, connection);
	/* The body comes anyway. Closing now would reset the connection under the client, which then
	 * never sees the answer. */
	pthread_mutex_lock(&req->lock);
	request_deliver_early_locked(req);
	req->at_head = false;
	pthread_mutex_unlock(&req->lock);
	return true;
}

/* Suspends the connection and gives the request to the workers. */
static bool hand_over(struct request *req, int (*start)(struct request *req))
{
	bool suspended;

	pthread_mutex_lock(&req->lock);
	suspended = request_suspend_locked(req);
	if (suspended)
		req->phase = PHASE_WORK;
	pthread_mutex_unlock(&req->lock);
	if (suspended && start(req) < 0) {
		struct err err;

		err_set(&err, ERR_UNAVAILABLE, "the server is busy");
		request_answer_error(req, &err);
		request_deliver(req);
	}
	return suspended;
}

/* Whether its body would be waited for before anybody knows who sends it. */
static bool is_strange(const struct request *req)
{
	return !(req->match.route->flags & ROUTE_OPEN) && !connection_is_known(req->client);
}

static bool judge(struct request *req, struct MHD_Connection *connection, const char *method,
	const char *version)
{
	const struct request_line line = {method, req->raw_target, version};
	unsigned flags;
	struct err err;

	connection_pass_head(req->client);
	if (check_head(req, &line, &err) < 0) {
		request_answer_error(req, &err);
		return answer_at_head(req, connection);
	}
	server_count_request(req->server, req);
	flags = req->match.route->flags;
	if (flags & ROUTE_RAW_BODY)
		return hand_over(req, request_worker_start);
	if (req->refusal || req->announced.size > UNKNOWN_BODY_MAX ||
		(req->announced.present && (req->announced.wants_continue || is_strange(req))))
		return hand_over(req, request_worker_admit);
	set_phase(req, PHASE_GATHER);
	return leave_head(req);
}

static bool gather(struct request *req, const char *data, size_t *size)
{
	if (*size == 0) {
		pthread_mutex_lock(&req->lock);
		req->body_done = true;
		pthread_mutex_unlock(&req->lock);
		return hand_over(req, request_worker_start);
	}
	if (buf_append(&req->body, data, *size) < 0) {
		struct err err;

		guard_refuse_long_body(req->match.route->flags, &err);
		request_answer_error(req, &err);
		request_deliver(req);
	}
	req->received += *size;
	*size = 0;
	return true;
}

/* True to go on. The client has its answer and should leave; it may first have to send a little. */
static bool linger(struct request *req, size_t *size)
{
	bool at_end = *size == 0;

	req->lingered += *size;
	*size = 0;
	return !at_end && !request_is_cut(req) && req->lingered <= LINGER_MAX;
}

static bool step(struct request *req, struct MHD_Connection *connection, const char *method,
	const char *version, const char *data, size_t *size)
{
	enum request_phase phase;
	bool at_head;

	pthread_mutex_lock(&req->lock);
	phase = req->phase;
	at_head = req->at_head;
	pthread_mutex_unlock(&req->lock);
	switch (phase) {
	case PHASE_HEAD:
		req->is_http_1_1 = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
		return judge(req, connection, method, version);
	case PHASE_GATHER:
		return at_head ? leave_head(req) : gather(req, data, size);
	case PHASE_PUMP:
		return at_head ? leave_head(req) : upload_pump(req, data, size);
	case PHASE_FILL:
		return at_head ? leave_head(req) : upload_fill(req, data, size);
	case PHASE_ANSWER:
		return at_head ? answer_at_head(req, connection) : queue_answer(req, connection);
	case PHASE_DROP:
		if (*size == 0)
			return queue_answer(req, connection);
		*size = 0;
		return true;
	case PHASE_LINGER:
		return linger(req, size);
	case PHASE_SENDING:
		return true;
	case PHASE_WORK:
	case PHASE_OVER:
		break;
	}
	return false;
}

/*
 * The library is about to refuse a request by itself. Where the headers are whole it would send the head
 * of its answer twice (0.9.75 builds it once more when it goes on), so that what follows on the connection
 * is anybody's guess: our answer goes out before, and closes the connection for sending.
 */
static void refuse_request(const struct loop *loop)
{
	struct request *req = connection_unread_head(loop_server(loop), loop);
	struct err err;

	if (!req)
		return;
	if (MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, "Content-Length"))
		err_set(&err, ERR_INVALID, "Content-Length is not a number, or too large");
	else
		err_set(&err, ERR_INVALID, "the request has no Host header");
	connection_pass_head(req->client);
	name_request(req);
	request_answer_error(req, &err);
	set_phase(req, PHASE_LINGER);
	req->is_broken = !response_write(req, req->sock);
}

static enum MHD_Result step_request(void *arg, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context)
{
	struct request *req = *context;

	(void)arg;
	(void)url;
	if (atomic_load(&req->server->aborting))
		return MHD_NO;
	return step(req, connection, method, version, data, size) ? MHD_YES : MHD_NO;
}

static void finish_request(void *arg, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode code)
{
	struct request *req = *context;

	(void)arg;
	(void)code;
	*context = NULL;
	if (req && !client_of(connection)->is_upgraded)
		request_end(req);
}

const struct loop_callbacks mhd_callbacks = {
	.open = open_request,
	.step = step_request,
	.refuse = refuse_request,
	.end = finish_request,
};
