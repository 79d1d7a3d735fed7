/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the server that need no connection: target, router, guard, body, listener, workers.
 */
#include "base/clock.h"
#include "base/share_pool.h"
#include "deadline.h"
#include "http/address_key.h"
#include "http/listener.h"
#include "http/server/connection.h"
#include "http/server/loop.h"
#include "http/server/mhd_callbacks.h"
#include "http/server/request/body.h"
#include "http/server/request/request_private.h"
#include "http/server/route/guard.h"
#include "http/server/route/router.h"
#include "http/server/route/target.h"
#include "http/server/server_private.h"
#include "http/workers.h"
#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The target. */

static int parse(const char *raw, struct target *target, struct arena *arena)
{
	struct err err = {0};
	int r = target_parse(raw, arena, target, &err);

	if (r < 0)
		assert_int_not_equal(err.kind, ERR_NONE);
	return r;
}

static void the_target_is_cut_at_slashes_before_it_is_decoded(void **state)
{
	struct arena arena = {0};
	struct target target;

	(void)state;
	assert_int_equal(parse("/v1/a%2Fb/..%2f/%e4?path=%2Fx+y&empty=&flag", &target, &arena), 0);
	assert_int_equal(target.segment_count, 4);
	assert_string_equal(target.segments[1], "a/b");
	assert_string_equal(target.segments[2], "../");
	assert_string_equal(target.segments[3], "\xe4");
	assert_string_equal(target_query(&target, "path"), "/x y");
	assert_string_equal(target_query(&target, "empty"), "");
	assert_string_equal(target_query(&target, "flag"), "");
	assert_null(target_query(&target, "none"));
	arena_fini(&arena);
}

static void a_target_that_could_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const bad[] = {"", "*", "http://x/", "/%", "/%4", "/%zz", "/a%00b",
		"/?a=%00", "/?%00=a", "/a b", "/a\x01", "/a\xff", "/#", "/?a=%"};
	struct arena arena = {0};
	struct target target;
	char huge[TARGET_MAX + 2];

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		if (parse(bad[i], &target, &arena) == 0)
			fail_msg("accepted %s", bad[i]);
	memset(huge, 'a', sizeof(huge) - 1);
	huge[0] = '/';
	huge[sizeof(huge) - 1] = '\0';
	assert_int_equal(parse(huge, &target, &arena), -EMSGSIZE);
	arena_fini(&arena);
}

static void a_parameter_that_is_given_twice_is_named(void **state)
{
	struct arena arena = {0};
	struct target target;

	(void)state;
	assert_int_equal(parse("/?a=1&b=2", &target, &arena), 0);
	assert_null(target.repeated);
	assert_int_equal(parse("/?b=0&a=1&%61=2&b=3", &target, &arena), 0);
	assert_string_equal(target.repeated, "a");
	assert_string_equal(target_query(&target, "a"), "1");
	arena_fini(&arena);
}

static void the_number_of_segments_and_parameters_is_bounded(void **state)
{
	struct arena arena = {0};
	struct target target;
	char text[1024] = "/?";

	(void)state;
	assert_int_equal(parse("/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g", &target, &arena), 0);
	assert_int_equal(parse("/1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g/h", &target, &arena), -ENOENT);
	for (int i = 0; i <= TARGET_PARAMS; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "p%d=1&", i);
	assert_int_equal(parse(text, &target, &arena), -EINVAL);
	arena_fini(&arena);
}

/* The router. */

static const struct route table[] = {
	{.method = "GET", .path = "/"},
	{.method = "GET", .path = "/v1/sandboxes"},
	{.method = "POST", .path = "/v1/sandboxes"},
	{.method = "GET", .path = "/v1/sandboxes/{id}"},
	{.method = "DELETE", .path = "/v1/sandboxes/{id}"},
	{.method = "POST", .path = "/v1/sandboxes/ensure"},
	{.method = "POST", .path = "/v1/sandboxes/{sandbox}/processes/{pid}/signal"},
	{.method = "HEAD", .path = "/v1/files"},
	{.method = "GET", .path = "/v1/files"},
};

static const struct route *find(const char *method, const char *path, char allow[48],
	struct router_match *match, struct arena *arena)
{
	struct router *router = router_new(table, array_len(table));
	struct err err = {0};
	struct target target;
	int r;

	assert_int_equal(target_parse(path, arena, &target, &err), 0);
	memset(match, 0, sizeof(*match));
	r = router_find(router, method_parse(method), &target, arena, match, &err);
	strcpy(allow, match->allow);
	router_free(router);
	if (r == -ENOENT)
		assert_string_equal(err.code, "route_not_found");
	else if (r < 0)
		assert_int_equal(err.kind, ERR_METHOD);
	return r < 0 ? NULL : match->route;
}

static void routes_are_found_with_fixed_segments_first(void **state)
{
	struct arena arena = {0};
	struct router_match match;
	char allow[48];

	(void)state;
	assert_ptr_equal(find("GET", "/", allow, &match, &arena), &table[0]);
	assert_ptr_equal(find("GET", "/v1/sandboxes", allow, &match, &arena), &table[1]);
	assert_ptr_equal(find("POST", "/v1/sandboxes/ensure", allow, &match, &arena), &table[5]);
	assert_ptr_equal(find("GET", "/v1/sandboxes/ensure", allow, &match, &arena), &table[3]);
	assert_ptr_equal(find("GET", "/v1/sandboxes/x%2Fy", allow, &match, &arena), &table[3]);
	assert_int_equal(match.param_count, 1);
	assert_string_equal(match.params[0].name, "id");
	assert_string_equal(match.params[0].value, "x/y");
	assert_ptr_equal(find("POST", "/v1/sandboxes/a/processes/7/signal", allow, &match, &arena),
		&table[6]);
	assert_string_equal(match.params[0].name, "sandbox");
	assert_string_equal(match.params[1].name, "pid");
	assert_string_equal(match.params[1].value, "7");
	assert_ptr_equal(find("HEAD", "/v1/files", allow, &match, &arena), &table[7]);
	assert_ptr_equal(find("HEAD", "/v1/sandboxes", allow, &match, &arena), &table[1]);
	arena_fini(&arena);
}

static void a_missing_route_is_told_from_a_missing_method(void **state)
{
	static const char *const missing[] = {"/v1", "/v1/sandboxes/", "/v1//sandboxes",
		"/v1/sandboxes/a/processes", "/v1/sandboxes//processes/1/signal", "/V1/sandboxes",
		"//"};
	struct arena arena = {0};
	struct router_match match;
	char allow[48];

	(void)state;
	for (size_t i = 0; i < array_len(missing); i++) {
		assert_null(find("GET", missing[i], allow, &match, &arena));
		assert_string_equal(allow, "");
	}
	assert_null(find("PUT", "/v1/sandboxes/x", allow, &match, &arena));
	assert_string_equal(allow, "GET, HEAD, DELETE");
	assert_null(find("PUT", "/v1/sandboxes/ensure", allow, &match, &arena));
	assert_string_equal(allow, "GET, HEAD, POST, DELETE");
	assert_null(find("OPTIONS", "/v1/sandboxes", allow, &match, &arena));
	assert_string_equal(allow, "GET, HEAD, POST");
	assert_null(find("get", "/v1/sandboxes", allow, &match, &arena));
	arena_fini(&arena);
}

/* The guard. */

static int check_source(
	uint16_t port, enum method method, const char *host, const char *origin, const char *site)
{
	static const char *const extra[] = {"sandlot.example", "other.example:8443", NULL};
	struct header list[3];
	struct headers headers = {list, 0};
	struct listener listener = {.host = "192.0.2.1", .port = port};
	struct guard *guard = guard_new(&listener, extra);
	struct err err = {0};
	int r;

	if (host)
		list[headers.count++] = (struct header){"host", host};
	if (origin)
		list[headers.count++] = (struct header){"Origin", origin};
	if (site)
		list[headers.count++] = (struct header){"Sec-Fetch-Site", site};
	r = guard_check_source(guard, &headers, method, &err);
	guard_free(guard);
	return r < 0 ? err_class((enum err_kind)err.kind)->http_status : 200;
}

static void only_own_hosts_and_origins_pass(void **state)
{
	static const char *const good[] = {"localhost:9090", "LOCALHOST:9090", "127.0.0.1:9090",
		"[::1]:9090", "192.0.2.1:9090", "sandlot.example", "sandlot.example:9090",
		"other.example:8443"};
	static const char *const bad[] = {"localhost", "localhost:9091", "localhost.:9090", "",
		"evil.example", "evil.example:9090", "127.0.0.1:9090.evil.example", "other.example",
		"localhost:9090@evil.example", "x.localhost:9090"};

	(void)state;
	for (size_t i = 0; i < array_len(good); i++)
		assert_int_equal(check_source(9090, METHOD_GET, good[i], NULL, NULL), 200);
	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(check_source(9090, METHOD_GET, bad[i], NULL, NULL), 421);
	assert_int_equal(check_source(9090, METHOD_GET, NULL, NULL, NULL), 400);
	assert_int_equal(check_source(80, METHOD_GET, "localhost", NULL, NULL), 200);
	assert_int_equal(
		check_source(9090, METHOD_POST, good[0], "http://127.0.0.1:9090", NULL), 200);
	assert_int_equal(
		check_source(9090, METHOD_POST, good[0], "https://sandlot.example", NULL), 200);
	assert_int_equal(check_source(9090, METHOD_GET, good[0], "http://evil.example", NULL), 403);
	assert_int_equal(check_source(9090, METHOD_GET, good[0], "null", NULL), 403);
	assert_int_equal(
		check_source(9090, METHOD_GET, good[0], "http://localhost:9091", NULL), 403);
	assert_int_equal(check_source(9090, METHOD_POST, good[0], NULL, "same-origin"), 200);
	assert_int_equal(check_source(9090, METHOD_POST, good[0], NULL, "none"), 200);
	assert_int_equal(check_source(9090, METHOD_POST, good[0], NULL, "same-site"), 403);
	assert_int_equal(check_source(9090, METHOD_DELETE, good[0], NULL, "cross-site"), 403);
	assert_int_equal(check_source(9090, METHOD_GET, good[0], NULL, "cross-site"), 200);
}

static void an_origin_has_a_host_only_for_its_own_scheme(void **state)
{
	(void)state;
	assert_string_equal(guard_origin_host("https://a.test:1", "https"), "a.test:1");
	assert_string_equal(guard_origin_host("HTTP://a.test", "http"), "a.test");
	assert_null(guard_origin_host("http://a.test", "https"));
	assert_null(guard_origin_host("https://a.test", "http"));
	assert_null(guard_origin_host("null", "http"));
	assert_null(guard_origin_host("", "http"));
	assert_null(guard_origin_host("http:/", "http"));
}

static const char *read_token(const char *authorization, const char *key, int *ret_status)
{
	struct header list[2];
	struct headers headers = {list, 0};
	const char *token = NULL;
	struct err err = {0};

	if (authorization)
		list[headers.count++] = (struct header){"Authorization", authorization};
	if (key)
		list[headers.count++] = (struct header){"X-API-Key", key};
	*ret_status = guard_read_token(&headers, &token, &err) < 0
			      ? err_class((enum err_kind)err.kind)->http_status
			      : 200;
	return token;
}

static void a_token_comes_from_either_header_but_not_two_from_both(void **state)
{
	char huge[GUARD_TOKEN_MAX + 2];
	int status;

	(void)state;
	assert_string_equal(read_token("Bearer abc", NULL, &status), "abc");
	assert_string_equal(read_token("bearer  abc", NULL, &status), "abc");
	assert_string_equal(read_token(NULL, "abc", &status), "abc");
	assert_string_equal(read_token("Bearer abc", "abc", &status), "abc");
	assert_string_equal(read_token("Basic eDp5", "abc", &status), "abc");
	read_token("Bearer abc", "def", &status);
	assert_int_equal(status, 400);
	read_token(NULL, NULL, &status);
	assert_int_equal(status, 401);
	read_token("Basic eDp5", NULL, &status);
	assert_int_equal(status, 401);
	read_token("Bearer ", NULL, &status);
	assert_int_equal(status, 401);
	read_token(NULL, "a b", &status);
	assert_int_equal(status, 401);
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	read_token(NULL, huge, &status);
	assert_int_equal(status, 401);
}

/* The body. */

static int read_body(const char *text, size_t len)
{
	json_t *object = NULL;
	struct err err = {0};
	int r = body_parse(text, len, &object, &err);

	if (r < 0)
		assert_string_equal(err.code, "invalid_json");
	json_decref(object);
	return r;
}

static void a_body_is_one_strict_json_object(void **state)
{
	static const char *const bad[] = {"", " ", "[]", "1", "\"x\"", "null", "{\"a\":1,\"a\":2}",
		"{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":1e999}", "{\"a\":\"\xff\"}",
		"{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}", "\xef\xbb\xbf{}", "{}x", "{}{}",
		"{\"a\":\"\\u0000\"}", "{\"\\u0000\":1}", "{'a':1}", "{a:1}", "{\"a\":1,}",
		"{\"a\":01}", "{\"a\":\"\n\"}", "{\"a\":99999999999999999999}",
		"{\"a\":\"\\ud800\"}", "/**/{}"};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		if (read_body(bad[i], strlen(bad[i])) == 0)
			fail_msg("accepted %s", bad[i]);
	assert_int_equal(read_body("{}\0", 3), -EINVAL);
	assert_int_equal(read_body("{\"a\":\"\0\"}", 9), -EINVAL);
	assert_int_equal(read_body(" {\"a\":[{}],\"b\":\"[[[[\\\"{{\"} \n", 27), 0);
}

static void nesting_is_bounded_without_recursion(void **state)
{
	enum { DEEP = 100000 };
	char *text = mem_new(DEEP * 2 + 16);

	(void)state;
	memcpy(text, "{\"a\":", 5);
	memset(text + 5, '[', DEEP);
	assert_int_equal(read_body(text, DEEP + 5), -EINVAL);
	memset(text + 5 + BODY_DEPTH, ']', BODY_DEPTH);
	text[5 + 2 * BODY_DEPTH] = '}';
	assert_int_equal(read_body(text, 6 + 2 * BODY_DEPTH), -EINVAL);
	memmove(text + 5, text + 6, 1 + 2 * BODY_DEPTH);
	memcpy(text + 5 + 2 * (BODY_DEPTH - 1), "}", 1);
	assert_int_equal(read_body(text, 6 + 2 * (BODY_DEPTH - 1)), 0);
	free(text);
}

/* The listener. */

static void a_taken_port_is_a_clear_message(void **state)
{
	struct listener first, second;
	struct err err = {0};
	char address[32], want[96];

	(void)state;
	assert_int_equal(listener_open("127.0.0.1:0", &first, &err), 0);
	assert_int_not_equal(first.port, 0);
	assert_string_equal(first.host, "127.0.0.1");
	snprintf(address, sizeof(address), "127.0.0.1:%u", first.port);
	assert_int_equal(listener_open(address, &second, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "cannot listen on %s: Address already in use", address);
	assert_string_equal(err.message, want);
	close(first.fd);
}

static void a_wrong_address_is_refused(void **state)
{
	static const char *const bad[] = {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
		"127.0.0.1:65536", "127.0.0.1:+1", "::1:80", "[::1]", "[]:1", "[::1:80",
		"localhost:80"};
	struct listener listener;
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		if (listener_open(bad[i], &listener, &err) != -EINVAL)
			fail_msg("accepted %s", bad[i]);
	assert_int_equal(listener_open("[::1]:0", &listener, &err), 0);
	assert_string_equal(listener.host, "[::1]");
	close(listener.fd);
}

/* The workers. */

struct task {
	struct work_item item;
	pthread_mutex_t *lock;
	pthread_cond_t *cond;
	unsigned *running, *done, *limit;
};

/* Waits until *limit tasks run at once, which proves that they have a thread each. */
static void run_together(struct work_item *item)
{
	struct task *task = (struct task *)item;

	pthread_mutex_lock(task->lock);
	++*task->running;
	pthread_cond_broadcast(task->cond);
	while (*task->running < *task->limit)
		pthread_cond_wait(task->cond, task->lock);
	++*task->done;
	pthread_cond_broadcast(task->cond);
	pthread_mutex_unlock(task->lock);
}

static void blocking_jobs_get_a_thread_each_up_to_the_maximum(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	unsigned running = 0, done = 0, limit = 8;
	struct workers *workers;
	struct task tasks[8];
	struct err err;

	(void)state;
	assert_int_equal(workers_open(8, 64, &workers, &err), 0);
	for (unsigned i = 0; i < 8; i++) {
		tasks[i] =
			(struct task){{.run = run_together}, &lock, &cond, &running, &done, &limit};
		assert_int_equal(workers_submit(workers, &tasks[i].item), 0);
	}
	pthread_mutex_lock(&lock);
	while (done < 8)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	workers_close(workers);
}

static void a_full_queue_refuses_but_not_what_must_run(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	unsigned running = 0, done = 0, limit = 2;
	struct workers *workers;
	struct task tasks[5];
	struct err err;

	(void)state;
	assert_int_equal(workers_open(1, 2, &workers, &err), 0);
	for (unsigned i = 0; i < 5; i++)
		tasks[i] =
			(struct task){{.run = run_together}, &lock, &cond, &running, &done, &limit};
	assert_int_equal(workers_submit(workers, &tasks[0].item), 0);
	pthread_mutex_lock(&lock);
	while (running < 1)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	assert_int_equal(workers_submit(workers, &tasks[1].item), 0);
	assert_int_equal(workers_submit(workers, &tasks[2].item), 0);
	assert_int_equal(workers_submit(workers, &tasks[3].item), -EAGAIN);
	workers_submit_always(workers, &tasks[4].item);
	pthread_mutex_lock(&lock);
	limit = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	workers_close(workers);
	assert_int_equal(done, 4);
}

/* The sweep over connections. */

/* The near end of a TCP connection; the far end in *ret_client. */
static int accept_client(int *ret_client)
{
	struct listener listener;
	struct err err;
	int sock;

	assert_int_equal(listener_open("127.0.0.1:0", &listener, &err), 0);
	*ret_client = client_connect(listener.port);
	sock = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(sock >= 0);
	close(listener.fd);
	return sock;
}

/* A connection, and no more of a server than looks after it. */
struct stage {
	struct server server;
	struct loop *loop;
	struct connection *connection;
	struct pollfd client;
	int sock;
};

static void stage_open_with(struct stage *stage, unsigned places)
{
	struct err err;

	*stage = (struct stage){.server = {.refs = 1, .clients_lock = PTHREAD_MUTEX_INITIALIZER},
		.client = {.events = POLLIN}};
	stage->server.strangers =
		share_pool_new(&(struct share_limits){.limit = places, .per_owner = places});
	stage->sock = accept_client(&stage->client.fd);
	assert_int_equal(event_loop_open("test", NULL, &stage->server.poller, &err), 0);
	assert_int_equal(loop_open(&stage->server, &mhd_callbacks, &stage->loop, &err), 0);
	stage->connection =
		connection_open(&stage->server, stage->loop, stage->sock, &(struct arrival){0});
}

static void stage_open(struct stage *stage)
{
	stage_open_with(stage, 1);
}

static void stage_close(struct stage *stage)
{
	connection_close(stage->connection);
	loop_close(stage->loop);
	event_loop_close(stage->server.poller);
	share_pool_free(stage->server.strangers);
	close(stage->sock);
	close(stage->client.fd);
}

static bool is_open(struct stage *stage)
{
	return poll(&stage->client, 1, 0) == 0;
}

static void headers_that_take_too_long_end_the_connection(void **state)
{
	struct stage stage;

	(void)state;
	stage_open(&stage);
	connection_sweep(&stage.server);
	assert_int_equal(stage.connection->head_since_ms, 0);
	client_print(stage.client.fd, "GET /");
	connection_sweep(&stage.server);
	assert_int_not_equal(stage.connection->head_since_ms, 0);
	/* A request in time starts it afresh. */
	connection_pass_head(stage.connection);
	connection_sweep(&stage.server);
	assert_int_equal(stage.connection->head_since_ms, 0);
	connection_sweep(&stage.server);
	assert_int_equal(stage.connection->head_since_ms, 0);
	client_print(stage.client.fd, "GET /");
	connection_sweep(&stage.server);
	connection_sweep(&stage.server);
	assert_true(is_open(&stage));
	stage.connection->head_since_ms -= CONNECTION_HEAD_MS + 1;
	connection_sweep(&stage.server);
	assert_true(client_sees_close(stage.client.fd));
	stage_close(&stage);
}

/*
 * While the first is being taken in, the others wait. There is one place, and each takes that of the one before: the
 * last of them keeps it.
 */
static void who_waited_the_longest_gives_way_to_who_came_last(void **state)
{
	enum { CLIENTS = 3 };
	struct stage stage;
	struct pollfd clients[CLIENTS];

	(void)state;
	stage_open(&stage);
	pthread_mutex_lock(&stage.server.clients_lock);
	for (int i = 0; i < CLIENTS; i++) {
		struct arrival arrival = {.fd = accept_client(&clients[i].fd)};

		arrival.since_us = clock_steady_us();
		arrival.address.ss_family = AF_INET;
		arrival.address_len = sizeof(struct sockaddr_in);
		clients[i].events = POLLIN;
		loop_take(stage.loop, &arrival);
	}
	pthread_mutex_unlock(&stage.server.clients_lock);
	assert_int_equal(poll(&clients[0], 1, DEADLINE_MS), 1);
	assert_int_equal(poll(&clients[1], 1, DEADLINE_MS), 1);
	assert_int_equal(poll(&clients[2], 1, 0), 0);
	assert_false(is_open(&stage));
	stage_close(&stage);
	for (int i = 0; i < CLIENTS; i++)
		close(clients[i].fd);
}

/* Another thread may have noted the time of one after we looked at the clock, but before we look at that one. */
static void who_is_idle_since_our_look_does_not_give_way_first(void **state)
{
	struct stage stage;
	struct pollfd clients[2];

	(void)state;
	stage_open_with(&stage, 2);
	for (int i = 0; i < 2; i++) {
		struct arrival arrival = {.fd = accept_client(&clients[i].fd)};

		arrival.since_us = clock_steady_us() + (i == 0 ? 3600000000 : 0);
		arrival.address.ss_family = AF_INET;
		arrival.address_len = sizeof(struct sockaddr_in);
		clients[i].events = POLLIN;
		loop_take(stage.loop, &arrival);
	}
	assert_int_equal(poll(&stage.client, 1, DEADLINE_MS), 1);
	assert_int_equal(poll(clients, 2, 0), 0);
	stage_close(&stage);
	for (int i = 0; i < 2; i++)
		close(clients[i].fd);
}

static void a_body_that_hardly_comes_ends_the_connection(void **state)
{
	static const char enough[CONNECTION_BODY_MIN];
	struct stage stage;
	struct request *req;

	(void)state;
	stage_open(&stage);
	req = request_new(stage.loop, NULL, stage.sock, "/");
	connection_begin(stage.connection, req);
	req->phase = PHASE_PUMP;
	connection_sweep(&stage.server);
	/* As much as is wanted in that time: it goes on. */
	client_send(stage.client.fd, enough, sizeof(enough));
	stage.connection->body_since_ms -= CONNECTION_BODY_MS + 1;
	connection_sweep(&stage.server);
	assert_true(is_open(&stage));
	/* A byte less, but it is we who do not read. */
	client_send(stage.client.fd, enough, sizeof(enough) - 1);
	stage.connection->body_since_ms -= CONNECTION_BODY_MS + 1;
	req->suspended = true;
	connection_sweep(&stage.server);
	req->suspended = false;
	connection_sweep(&stage.server);
	assert_true(is_open(&stage));
	/* And now it is the client. */
	client_send(stage.client.fd, enough, sizeof(enough) - 1);
	stage.connection->body_since_ms -= CONNECTION_BODY_MS + 1;
	connection_sweep(&stage.server);
	assert_true(client_sees_close(stage.client.fd));
	connection_end(stage.connection);
	request_unref(req);
	stage_close(&stage);
}

static void per_address_limit_are_addresses_or_networks_of_them(void **state)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET}, other = v4;
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6}, near = v6, far = v6;
	uint64_t one, two;

	(void)state;
	inet_pton(AF_INET, "127.0.0.1", &v4.sin_addr);
	inet_pton(AF_INET, "127.0.0.2", &other.sin_addr);
	inet_pton(AF_INET6, "2001:db8:0:1::1", &v6.sin6_addr);
	inet_pton(AF_INET6, "2001:db8:0:1:ffff::2", &near.sin6_addr);
	inet_pton(AF_INET6, "2001:db8:0:2::1", &far.sin6_addr);
	one = address_key_of((struct sockaddr *)&v4);
	two = address_key_of((struct sockaddr *)&other);
	assert_true(one != two);
	assert_true(
		address_key_of((struct sockaddr *)&v6) == address_key_of((struct sockaddr *)&near));
	assert_true(
		address_key_of((struct sockaddr *)&v6) != address_key_of((struct sockaddr *)&far));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_target_is_cut_at_slashes_before_it_is_decoded),
		cmocka_unit_test(a_target_that_could_be_read_in_two_ways_is_refused),
		cmocka_unit_test(a_parameter_that_is_given_twice_is_named),
		cmocka_unit_test(the_number_of_segments_and_parameters_is_bounded),
		cmocka_unit_test(routes_are_found_with_fixed_segments_first),
		cmocka_unit_test(a_missing_route_is_told_from_a_missing_method),
		cmocka_unit_test(only_own_hosts_and_origins_pass),
		cmocka_unit_test(an_origin_has_a_host_only_for_its_own_scheme),
		cmocka_unit_test(a_token_comes_from_either_header_but_not_two_from_both),
		cmocka_unit_test(a_body_is_one_strict_json_object),
		cmocka_unit_test(nesting_is_bounded_without_recursion),
		cmocka_unit_test(a_taken_port_is_a_clear_message),
		cmocka_unit_test(a_wrong_address_is_refused),
		cmocka_unit_test(blocking_jobs_get_a_thread_each_up_to_the_maximum),
		cmocka_unit_test(a_full_queue_refuses_but_not_what_must_run),
		cmocka_unit_test(headers_that_take_too_long_end_the_connection),
		cmocka_unit_test(who_waited_the_longest_gives_way_to_who_came_last),
		cmocka_unit_test(who_is_idle_since_our_look_does_not_give_way_first),
		cmocka_unit_test(a_body_that_hardly_comes_ends_the_connection),
		cmocka_unit_test(per_address_limit_are_addresses_or_networks_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
