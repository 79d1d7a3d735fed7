/* SPDX-License-Identifier: Apache-2.0 */
#include "http_fixture.h"

#include "base/fd.h"
#include "base/log.h"
#include "deadline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void bump(struct fixture *fixture, unsigned *counter)
{
	pthread_mutex_lock(&fixture->lock);
	++*counter;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
}

static void on_gone(void *arg)
{
	struct fixture *fixture = arg;

	bump(fixture, &fixture->gone);
}

static void on_release(void *arg)
{
	struct fixture *fixture = arg;

	bump(fixture, &fixture->released);
}

static int handle_plain(struct request *req, void *context, struct err *err)
{
	(void)context;
	(void)err;
	request_answer_header(req, "X-Extra", "yes");
	request_answer_text(req, 200, "text/plain", "hello");
	return 0;
}

/* What the server understood: parameter, query, header, principal. */
static int handle_echo(struct request *req, void *context, struct err *err)
{
	const char *query = request_query(req, "q");
	const char *header = request_header(req, "x-test");
	const char *accept = request_header(req, "Accept");

	(void)context;
	(void)err;
	request_answer_json(req, 200,
		json_pack("{s:s, s:s?, s:s?, s:s?, s:s, s:s}", "name",
			request_param(req, "name"),			    /* */
			"query", query, "header", header, "accept", accept, /* */
			"user", request_principal(req)->user, "id", request_id(req)));
	return 0;
}

static int handle_json(struct request *req, void *context, struct err *err)
{
	(void)context;
	(void)err;
	request_answer_json(req, 200, json_deep_copy(request_body(req)));
	return 0;
}

static int handle_empty(struct request *req, void *context, struct err *err)
{
	struct fixture *fixture = context;

	(void)err;
	request_keep(req, fixture, on_release);
	request_answer_empty(req, 204);
	return 0;
}

static int handle_internal(struct request *req, void *context, struct err *err)
{
	(void)req;
	(void)context;
	return err_set(err, ERR_INTERNAL, "open /etc/secret: Permission denied");
}

static int handle_rate(struct request *req, void *context, struct err *err)
{
	(void)req;
	(void)context;
	return err_explain(err, ERR_RATE, "slow_down", "wait", "not so fast \"\xff\"");
}

static int handle_nothing(struct request *req, void *context, struct err *err)
{
	(void)req;
	(void)context;
	(void)err;
	return 0;
}

static int handle_block(struct request *req, void *context, struct err *err)
{
	struct fixture *fixture = context;

	(void)err;
	pthread_mutex_lock(&fixture->lock);
	fixture->entered++;
	pthread_cond_broadcast(&fixture->cond);
	while (fixture->may_leave == 0)
		pthread_cond_wait(&fixture->cond, &fixture->lock);
	fixture->may_leave--;
	pthread_mutex_unlock(&fixture->lock);
	request_answer_text(req, 200, "text/plain", "late");
	return 0;
}

static int handle_hold(struct request *req, void *context, struct err *err)
{
	struct fixture *fixture = context;

	(void)err;
	request_keep(req, fixture, on_release);
	request_hold(req, on_gone, fixture);
	pthread_mutex_lock(&fixture->lock);
	fixture->held = req;
	fixture->entered++;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
	return 0;
}

static void answer_now(void *req)
{
	request_answer_text(req, 200, "text/plain", "asked too early");
	request_release(req);
}

static int handle_hold_until_close(struct request *req, void *context, struct err *err)
{
	struct fixture *fixture = context;

	(void)err;
	request_hold_until_close(req, answer_now, req);
	bump(fixture, &fixture->entered);
	return 0;
}

static int handle_hold_shortly(struct request *req, void *context, struct err *err)
{
	(void)context;
	(void)err;
	request_hold(req, NULL, NULL);
	request_answer_text(req, 200, "text/plain", "released");
	request_release(req);
	return 0;
}

/* Fills a stream as long as it takes anything; freed when its client is gone. */
struct producer {
	struct fixture *fixture;
	struct stream *stream;
};

static void offer_more(void *arg)
{
	struct producer *producer = arg;
	char data[1000];

	memset(data, 'x', sizeof(data));
	while (stream_offer(producer->stream, data, sizeof(data)) == 0) {
		pthread_mutex_lock(&producer->fixture->lock);
		producer->fixture->offered += sizeof(data);
		pthread_mutex_unlock(&producer->fixture->lock);
	}
}

static void producer_gone(void *arg)
{
	struct producer *producer = arg;

	on_gone(producer->fixture);
	stream_unref(producer->stream);
	free(producer);
}

static int handle_stream(struct request *req, void *context, struct err *err)
{
	static const struct stream_events quiet = {NULL, producer_gone};
	static const struct stream_events endless = {offer_more, producer_gone};
	bool is_endless = request_query(req, "endless") != NULL;
	struct producer *producer = mem_new(sizeof(*producer));
	struct fixture *fixture = context;
	struct stream *stream = stream_new(32 * 1024, is_endless ? &endless : &quiet, producer);

	(void)err;
	*producer = (struct producer){fixture, stream};
	if (request_query(req, "ping"))
		stream_set_heartbeat(stream, 20);
	pthread_mutex_lock(&fixture->lock);
	stream_unref(fixture->stream);
	fixture->stream = stream_ref(stream);
	pthread_mutex_unlock(&fixture->lock);
	if (is_endless)
		offer_more(producer);
	request_answer_stream(req, 200, "text/event-stream", stream);
	bump(fixture, &fixture->entered);
	return 0;
}

/* With ?orphan=1 the far end is closed from the start. */
static int make_pair(struct request *req, struct fixture *fixture, int *ret_fd, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "socketpair");
	if (fd_set_nonblocking(pair[0]) < 0 || fd_set_timeout(pair[1], DEADLINE_MS) < 0)
		return err_set(err, ERR_INTERNAL, "fcntl");
	pthread_mutex_lock(&fixture->lock);
	if (request_query(req, "orphan"))
		close(pair[1]);
	else
		fixture->helper_fd = pair[1];
	fixture->entered++;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
	*ret_fd = pair[0];
	return 0;
}

static int handle_download(struct request *req, void *context, struct err *err)
{
	const char *size = request_query(req, "size");
	int fd, r = make_pair(req, context, &fd, err);

	if (r == 0)
		request_answer_fd(req, 200, "application/octet-stream", fd,
			size ? strtoull(size, NULL, 10) : UINT64_MAX);
	return r;
}

struct receiver {
	struct fixture *fixture;
	int fd;
};

static int finish_upload(struct request *req, void *arg, bool complete, struct err *err)
{
	struct receiver *receiver = arg;
	struct fixture *fixture = receiver->fixture;

	(void)err;
	close(receiver->fd);
	free(receiver);
	pthread_mutex_lock(&fixture->lock);
	fixture->complete = complete;
	fixture->finished++;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
	if (!complete)
		return err_explain(
			err, ERR_NO_SPACE, NULL, NULL, "the disk of the sandbox is full");
	request_answer_json(req, 201, json_pack("{s:b}", "complete", complete));
	return 0;
}

static int handle_upload(struct request *req, void *context, struct err *err)
{
	struct receiver *receiver = mem_new(sizeof(*receiver));
	int r = make_pair(req, context, &receiver->fd, err);

	receiver->fixture = context;
	if (r == 0)
		request_receive_to_fd(req, receiver->fd, finish_upload, receiver);
	return r;
}

static int handle_refuse(struct request *req, void *context, struct err *err)
{
	(void)req;
	(void)context;
	return err_set(err, ERR_CONFLICT, "not now");
}

/* Reads the raw body, all of it or (?stop=n) as much as it wants. */
static int handle_read(struct request *req, void *context, struct err *err)
{
	struct fixture *fixture = context;
	const char *stop = request_query(req, "stop");
	uint64_t limit = stop ? strtoull(stop, NULL, 10) : UINT64_MAX;
	uint64_t sum = 0, total = 0;
	unsigned char data[10000];
	ssize_t n = 1;

	bump(fixture, &fixture->entered);
	while (total < limit && (n = request_read(req, data, sizeof(data))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			sum += data[i];
		total += (uint64_t)n;
		pthread_mutex_lock(&fixture->lock);
		fixture->uploaded = total;
		pthread_cond_broadcast(&fixture->cond);
		pthread_mutex_unlock(&fixture->lock);
	}
	pthread_mutex_lock(&fixture->lock);
	fixture->read_result = (int)n;
	fixture->finished++;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
	if (n < 0)
		return err_from(err, (int)n, "read the body");
	if (stop)
		return err_set(err, ERR_CONFLICT, "enough");
	request_answer_json(req, 200,
		json_pack("{s:I, s:I}", "size", (json_int_t)total, "sum", (json_int_t)sum));
	return 0;
}

static int handle_evict(struct request *req, void *context, struct err *err)
{
	(void)context;
	(void)err;
	request_evict(req, request_param(req, "id"));
	request_answer_empty(req, 204);
	return 0;
}

static const struct route routes[] = {
	{"GET", "/plain", handle_plain, ROUTE_OPEN, 0, NULL},
	{"GET", "/echo/{name}", handle_echo, 0, 0, NULL},
	{"POST", "/json", handle_json, ROUTE_BODY, 0, NULL},
	{"POST", "/open", handle_json, ROUTE_BODY | ROUTE_OPEN, 0, NULL},
	{"DELETE", "/thing", handle_empty, 0, 0, NULL, "thing.delete"},
	{"GET", "/internal", handle_internal, 0, 0, NULL},
	{"GET", "/rate", handle_rate, 0, 0, NULL, "rate"},
	{"GET", "/nothing", handle_nothing, 0, 0, NULL},
	{"GET", "/denied", handle_plain, 0, 1, NULL, "denied"},
	{"GET", "/ticket", handle_plain, ROUTE_TICKET, 0, NULL},
	{"DELETE", "/token/{id}", handle_evict, 0, 0, NULL},
	{"GET", "/block", handle_block, 0, 0, NULL},
	{"GET", "/block/{name}", handle_block, ROUTE_WAITS, 0, NULL, "block"},
	{"GET", "/hold", handle_hold, 0, 0, NULL},
	{"GET", "/hold/until-close", handle_hold_until_close, 0, 0, NULL},
	{"GET", "/hold/shortly", handle_hold_shortly, 0, 0, NULL, "hold.shortly"},
	{"GET", "/stream", handle_stream, 0, 0, NULL},
	{"GET", "/download", handle_download, 0, 0, NULL},
	{"PUT", "/upload", handle_upload, ROUTE_RAW_BODY, 0, NULL, "upload"},
	{"PUT", "/refuse", handle_refuse, ROUTE_RAW_BODY, 0, NULL},
	{"PUT", "/read", handle_read, ROUTE_RAW_BODY, 0, NULL},
};

static int admit(void *context, const struct credential *credential, const struct route *route,
	struct principal *ret, struct err *err)
{
	struct fixture *fixture = context;
	const char *shown = credential->ticket ? credential->ticket : credential->token;
	bool is_owner;

	bump(fixture, &fixture->admitted);
	snprintf(ret->token_id, sizeof(ret->token_id), "%s",
		strcmp(shown, TOKEN) == 0 ? "one" : "two");
	ret->is_operator = strcmp(shown, OPERATOR_TOKEN) == 0;
	is_owner = strncmp(shown, OWNER_TOKEN, strlen(OWNER_TOKEN)) == 0 || ret->is_operator;
	snprintf(ret->user, sizeof(ret->user), "%s",
		is_owner			  ? shown
		: strcmp(shown, OTHER_TOKEN) == 0 ? "other"
						  : "tester");
	ret->expires_at_ms = atomic_load(&fixture->expires_at_ms);
	if (route->scope)
		return err_set(err, ERR_DENIED, "not for anybody");
	if (!is_owner && strcmp(shown, TOKEN) != 0 && strcmp(shown, OTHER_TOKEN) != 0)
		return err_set(err, ERR_UNAUTHENTICATED, "no such token");
	return 0;
}

static void note(struct fixture *fixture, const struct request *req, unsigned *counter)
{
	pthread_mutex_lock(&fixture->lock);
	snprintf(fixture->account, sizeof(fixture->account), "%s %s %d %s %s", request_action(req),
		request_principal(req)->user, request_status(req), request_error_code(req),
		request_peer(req));
	(*counter)++;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
}

static void account(void *context, const struct request *req)
{
	struct fixture *fixture = context;

	note(fixture, req, &fixture->accounts);
}

static void refuse(void *context, const struct request *req)
{
	struct fixture *fixture = context;

	note(fixture, req, &fixture->refusals);
}

static void open_with(struct fixture *fixture, struct server_config config)
{
	static const char *const hosts[] = {"sandlot.example", NULL};
	struct err err = {0};

	config.bind = "127.0.0.1:0";
	config.routes = routes;
	config.route_count = array_len(routes);
	config.context = fixture;
	config.admit = admit;
	config.account = account;
	config.refused = refuse;
	config.hosts = hosts;
	*fixture = (struct fixture){.helper_fd = -1};
	pthread_mutex_init(&fixture->lock, NULL);
	pthread_cond_init(&fixture->cond, NULL);
	assert_int_equal(server_open(&config, &fixture->server, &err), 0);
	fixture->port = server_port(fixture->server);
}

void fixture_open(struct fixture *fixture, unsigned max_workers, unsigned max_connections)
{
	open_with(fixture, (struct server_config){
				   .max_workers = max_workers, .max_connections = max_connections});
}

void fixture_open_asking(
	struct fixture *fixture, bool (*takes_query)(const struct route *route, const char *name))
{
	open_with(fixture, (struct server_config){.takes_query = takes_query});
}

void fixture_close(struct fixture *fixture)
{
	server_close(fixture->server, 5000);
	stream_unref(fixture->stream);
	fd_close(fixture->helper_fd);
	pthread_cond_destroy(&fixture->cond);
	pthread_mutex_destroy(&fixture->lock);
}

void fixture_wait_for(
	pthread_mutex_t *lock, pthread_cond_t *cond, const unsigned *counter, unsigned want)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	pthread_mutex_lock(lock);
	while (*counter < want && r != ETIMEDOUT)
		r = pthread_cond_timedwait(cond, lock, &until);
	pthread_mutex_unlock(lock);
	assert_int_not_equal(r, ETIMEDOUT);
}

void fixture_wait(struct fixture *fixture, const unsigned *counter, unsigned count)
{
	fixture_wait_for(&fixture->lock, &fixture->cond, counter, count);
}

void fixture_let_go(struct fixture *fixture, unsigned count)
{
	pthread_mutex_lock(&fixture->lock);
	fixture->may_leave += count;
	pthread_cond_broadcast(&fixture->cond);
	pthread_mutex_unlock(&fixture->lock);
}

int fixture_setup(void **state)
{
	struct fixture *fixture = mem_new(sizeof(*fixture));

	/* Handlers that fail on purpose log it; a test's output is for its own failures. */
	log_open("test", LOG_ERROR + 1);
	fixture_open(fixture, 0, 0);
	*state = fixture;
	return 0;
}

int fixture_teardown(void **state)
{
	fixture_close(*state);
	free(*state);
	return 0;
}

int fixture_call(struct fixture *fixture, const char *line, const char *extra, const char *body)
{
	struct reply reply;
	int status;

	client_call(fixture->port, line, extra, body, &reply);
	status = reply.status;
	reply_fini(&reply);
	return status;
}

int fixture_status_of(struct fixture *fixture, const char *fmt)
{
	struct reply reply;
	int fd = client_connect(fixture->port);
	int status;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	client_print(fd, fmt, fixture->port);
#pragma GCC diagnostic pop
	client_receive(fd, &reply, true);
	status = reply.status;
	reply_fini(&reply);
	close(fd);
	return status;
}

int fixture_connect_idle(const struct fixture *fixture)
{
	int fd = client_connect(fixture->port);
	struct reply reply;

	client_request(fd, fixture->port, "GET /plain", NULL, NULL);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
	return fd;
}
