/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_stage.h"

#include "base/clock.h"
#include "base/fd.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define OWNED	"/of-"
#define SLEEPER "/sleep"

/* --- sockets --- */

static int listen_on_loopback(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(sock, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(sock, 64), 0);
	return sock;
}

static int connect_to(int listener)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fd_set_timeout(sock, DEADLINE_MS), 0);
	return sock;
}

int stage_connect(const struct stage *stage)
{
	return connect_to(stage->listen_fd);
}

int stage_accept(const struct stage *stage)
{
	int sock = accept4(stage->app_fd, NULL, NULL, SOCK_CLOEXEC);

	assert_true(sock >= 0);
	assert_int_equal(fd_set_timeout(sock, DEADLINE_MS), 0);
	return sock;
}

void say(int sock, const char *text)
{
	assert_int_equal(fd_write_full(sock, text, strlen(text)), 0);
}

char *hear(int sock, const char *until)
{
	struct buf all = BUF_INIT(1 << 20);
	char byte;

	while (all.len < strlen(until) ||
		memcmp(all.data + all.len - strlen(until), until, strlen(until)) != 0) {
		if (recv(sock, &byte, 1, 0) != 1)
			fail_msg("no \"%s\", only %.*s", until, (int)all.len, (char *)all.data);
		buf_append(&all, &byte, 1);
	}
	return buf_take_str(&all);
}

void expect(int sock, const char *until)
{
	free(hear(sock, until));
}

void expect_end(int sock)
{
	char byte;

	assert_int_equal(recv(sock, &byte, 1, 0), 0);
}

/* --- what the proxy asks --- */

static void find(void *context, const struct proxy_visit *visit, struct proxy_way *way)
{
	struct stage *stage = context;

	atomic_fetch_add(&stage->finds, 1);
	snprintf(way->key, sizeof(way->key), "%s", visit->target + 1);
	if (strncmp(visit->target, SLEEPER, strlen(SLEEPER)) == 0 &&
		!atomic_load(&stage->is_awake)) {
		way->kind = PROXY_WAKE;
		way->wake_class = (uint64_t)visit->target[strlen(SLEEPER)];
		return;
	}
	if (strncmp(visit->target, OWNED, strlen(OWNED)) == 0) {
		way->owner = (uint64_t)visit->target[strlen(OWNED)];
		way->is_operators = way->owner == 'o';
	}
	way->generation = atomic_load(&stage->generation);
	way->good_until_ms = clock_steady_ms() + stage->good_ms;
	way->ends_ms = clock_steady_ms() + stage->ends_in_ms;
	way->port = 3000;
	way->kind = PROXY_GO;
	way->fd = connect_to(stage->app_fd);
	assert_int_equal(fd_set_nonblocking(way->fd), 0);
}

static void wake(void *context, const char *key)
{
	struct stage *stage = context;

	(void)key;
	atomic_fetch_add(&stage->wakes, 1);
	assert_int_equal(sem_wait(&stage->may_wake), 0);
}

static void refuse(const struct proxy_refusal *refusal, bool is_page, struct proxy_way *way)
{
	way->kind = PROXY_ANSWER;
	way->status = refusal->status;
	way->type = is_page ? "text/html" : "text/plain";
	way->body = BUF_INIT(1024);
	buf_printf(&way->body, "%s: %s", refusal->code, refusal->message);
}

static bool is_granted(void *context, const struct proxy_way *way)
{
	(void)way;
	return atomic_load(&((struct stage *)context)->is_granted);
}

static void used(void *context, const char *key)
{
	(void)context;
	(void)key;
}

/* --- life --- */

void stage_init(struct stage *stage, unsigned max_connections)
{
	*stage = (struct stage){.good_ms = 60000,
		.ends_in_ms = 3600000,
		.is_granted = true,
		.config = {.listener = &stage->listener,
			.threads = 1,
			.max_workers = 4,
			.max_connections = max_connections,
			.max_per_source = max_connections,
			.max_per_key = max_connections,
			.requests_per_second = 1, /* which is not for clients of this machine */
			.context = stage,
			.generation = &stage->generation,
			.find = find,
			.refuse = refuse,
			.answer_ms = 300000,
			.stall_ms = 60000,
			.quiet_ms = 3600000,
			.wake_ms = 300000,
			.wake = wake,
			.is_granted = is_granted,
			.used = used}};
	assert_int_equal(sem_init(&stage->may_wake, 0, 0), 0);
}

void stage_start(struct stage *stage)
{
	struct err err;

	stage->listen_fd = stage->listener.fd = listen_on_loopback();
	assert_int_equal(fd_set_nonblocking(stage->listen_fd), 0);
	stage->app_fd = listen_on_loopback();
	assert_int_equal(fd_set_timeout(stage->app_fd, DEADLINE_MS), 0);
	assert_int_equal(proxy_open(&stage->config, &stage->proxy, &err), 0);
}

void stage_open(struct stage *stage, unsigned max_connections)
{
	stage_init(stage, max_connections);
	stage_start(stage);
}

void stage_close(struct stage *stage)
{
	proxy_close(stage->proxy);
	close(stage->listen_fd);
	close(stage->app_fd);
	sem_destroy(&stage->may_wake);
}

int stage_take(const struct stage *stage)
{
	int app = stage_accept(stage);

	expect(app, "\r\n\r\n");
	return app;
}

int stage_ask(const struct stage *stage, int client, const char *request)
{
	say(client, request);
	return stage_take(stage);
}

void stage_reply(int app, int client)
{
	say(app, OK);
	expect(client, "ok");
}
