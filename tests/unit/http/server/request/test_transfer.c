/* SPDX-License-Identifier: Apache-2.0 */
/* What lasts: held requests, streams, downloads, uploads, and the end of the server. */
#include "http_fixture.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "deadline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BIG (20u * 1024 * 1024)

/* Receives the next reply and checks its status and (unless NULL) its body. */
static void expect_reply(int fd, int status, const char *body)
{
	struct reply reply;

	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, status);
	if (body)
		assert_string_equal(reply.body, body);
	assert_true(reply.whole);
	reply_fini(&reply);
}

/* The connection still works. */
static void expect_alive(struct fixture *fixture, int fd)
{
	client_request(fd, fixture->port, "GET /plain", NULL, NULL);
	expect_reply(fd, 200, "hello");
}

/* Held requests. */

static void a_held_request_is_answered_when_it_is_released(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	for (unsigned i = 1; i <= 3; i++) {
		client_request(fd, fixture->port, "GET /hold", WITH_TOKEN, NULL);
		fixture_wait(fixture, &fixture->entered, i);
		request_answer_text(fixture->held, 200, "text/plain", "at last");
		request_release(fixture->held);
		expect_reply(fd, 200, "at last");
		fixture_wait(fixture, &fixture->released, i);
	}
	assert_int_equal(fixture->gone, 0);
	close(fd);
}

static void a_held_request_can_end_in_an_error(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);
	struct err err;

	client_request(fd, fixture->port, "GET /hold", WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, 1);
	err_set(&err, ERR_TIMEOUT, "too slow");
	request_release_error(fixture->held, &err);
	expect_reply(fd, 504, NULL);
	expect_alive(fixture, fd);
	close(fd);
}

static void a_request_may_be_released_before_its_handler_returns(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	for (int i = 0; i < 100; i++) {
		client_request(fd, fixture->port, "GET /hold/shortly", WITH_TOKEN, NULL);
		expect_reply(fd, 200, "released");
	}
	close(fd);
}

static void the_holder_is_told_once_that_the_client_left(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /hold", WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, 1);
	close(fd);
	fixture_wait(fixture, &fixture->gone, 1);
	assert_int_equal(fixture->released, 0);
	request_answer_text(fixture->held, 200, "text/plain", "to nobody");
	request_release(fixture->held);
	fixture_wait(fixture, &fixture->released, 1);
	assert_int_equal(fixture->gone, 1);
}

static void bytes_sent_ahead_do_not_make_a_held_client_gone(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /hold", WITH_TOKEN, NULL);
	client_request(fd, fixture->port, "GET /plain", NULL, NULL);
	fixture_wait(fixture, &fixture->entered, 1);
	client_request(fd, fixture->port, "GET /plain", NULL, NULL);
	request_answer_text(fixture->held, 200, "text/plain", "first");
	request_release(fixture->held);
	expect_reply(fd, 200, "first");
	expect_reply(fd, 200, "hello");
	expect_reply(fd, 200, "hello");
	assert_int_equal(fixture->gone, 0);
	close(fd);
}

/* Streams. */

static void a_stream_sends_what_is_offered_and_ends_cleanly(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char value[256];
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /stream", WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, 1);
	for (int i = 0; i < 1000; i++) {
		char event[64];
		int len = snprintf(event, sizeof(event), "id: %d\ndata: x\n\n", i);

		/* The reader below has not begun; all of it fits the stream. */
		assert_int_equal(stream_offer(fixture->stream, event, (size_t)len), 0);
	}
	stream_finish(fixture->stream);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_header(&reply, "Content-Type", value), "text/event-stream");
	assert_true(reply.whole);
	assert_non_null(strstr(reply.body, "id: 0\ndata: x\n\n"));
	assert_non_null(strstr(reply.body, "id: 999\ndata: x\n\n"));
	reply_fini(&reply);
	fixture_wait(fixture, &fixture->gone, 1);
	expect_alive(fixture, fd);
	close(fd);
}

static void a_quiet_stream_sends_heartbeats(void **state)
{
	struct fixture *fixture = *state;
	char text[1024] = "";
	size_t len = 0;
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /stream?ping=1", WITH_TOKEN, NULL);
	while (len < sizeof(text) - 1) {
		ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);

		assert_true(n > 0);
		len += (size_t)n;
		if (strstr(text, ": ping\n\n") &&
			strstr(strstr(text, ": ping\n\n") + 1, ": ping\n\n"))
			break;
	}
	assert_non_null(strstr(text, ": ping\n\n"));
	close(fd);
	fixture_wait(fixture, &fixture->gone, 1);
}

static void a_reader_that_vanishes_from_a_quiet_stream_is_noticed(void **state)
{
	struct fixture *fixture = *state;
	uint64_t before;
	char byte;
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /stream", WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, 1);
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	before = clock_steady_ms();
	close(fd);
	fixture_wait(fixture, &fixture->gone, 1);
	assert_true(clock_steady_ms() - before < 5000);
	assert_int_equal(stream_offer(fixture->stream, "x", 1), -EPIPE);
}

static void a_slow_reader_holds_back_the_producer(void **state)
{
	struct fixture *fixture = *state;
	uint64_t offered = 0, before;
	char *data = mem_new(65536);
	uint64_t received = 0;
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /stream?endless=1", WITH_TOKEN, NULL);
	/* It fills the socket's buffers and the ring, and then nothing moves any more. */
	do {
		before = offered;
		usleep(50000);
		pthread_mutex_lock(&fixture->lock);
		offered = fixture->offered;
		pthread_mutex_unlock(&fixture->lock);
	} while (offered == 0 || offered != before);
	assert_true(offered < 16u * 1024 * 1024);
	while (received < BIG) {
		ssize_t n = recv(fd, data, 65536, 0);

		assert_true(n > 0);
		received += (uint64_t)n;
	}
	pthread_mutex_lock(&fixture->lock);
	assert_true(fixture->offered > BIG - 1024 * 1024);
	pthread_mutex_unlock(&fixture->lock);
	close(fd);
	free(data);
	fixture_wait(fixture, &fixture->gone, 1);
}

/* Downloads. */

static unsigned char pattern(uint64_t at)
{
	return (unsigned char)(at * 7 + (at >> 13));
}

/* Writes size bytes of the pattern to the helper's end, on a thread: the pair holds only little. */
struct output_events {
	int fd;
	uint64_t size;
};

static void *feed_main(void *arg)
{
	struct output_events *feed = arg;
	unsigned char data[10000];
	uint64_t at = 0;

	while (at < feed->size) {
		size_t len = sizeof(data);

		if (len > feed->size - at)
			len = feed->size - at;
		for (size_t i = 0; i < len; i++)
			data[i] = pattern(at + i);
		if (fd_write_full(feed->fd, data, len) < 0)
			break;
		at += len;
	}
	close(feed->fd);
	return NULL;
}

/* Asks for `promised` bytes (NULL: chunked), has `size` delivered, gives back the reply. */
static void download(
	struct fixture *fixture, int fd, const char *promised, uint64_t size, struct reply *reply)
{
	unsigned before = fixture->entered;
	struct output_events feed = {.size = size};
	pthread_t thread;
	char line[64];

	snprintf(line, sizeof(line), "GET /download%s%s", promised ? "?size=" : "",
		promised ? promised : "");
	client_request(fd, fixture->port, line, WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, before + 1);
	feed.fd = take_fd(&fixture->helper_fd);
	assert_int_equal(pthread_create(&thread, NULL, feed_main, &feed), 0);
	client_receive(fd, reply, true);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < reply->len; i++)
		if ((unsigned char)reply->body[i] != pattern(i))
			fail_msg("byte %zu differs", i);
}

static void a_download_gives_exactly_what_was_promised(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);
	struct reply reply;

	download(fixture, fd, "20971520", BIG, &reply);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply.len, BIG);
	assert_true(reply.whole);
	reply_fini(&reply);
	download(fixture, fd, "0", 0, &reply);
	assert_int_equal(reply.len, 0);
	assert_true(reply.whole);
	reply_fini(&reply);
	download(fixture, fd, NULL, BIG, &reply);
	assert_int_equal(reply.len, BIG);
	assert_true(reply.whole);
	reply_fini(&reply);
	expect_alive(fixture, fd);
	close(fd);
}

static void a_download_that_ends_early_does_not_look_whole(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);
	struct reply reply;

	download(fixture, fd, "20971520", 100000, &reply);
	assert_int_equal(reply.status, 200);
	assert_false(reply.whole);
	assert_true(reply.len <= 100000);
	reply_fini(&reply);
	close(fd);
}

static void the_helper_sees_that_the_downloading_client_left(void **state)
{
	struct fixture *fixture = *state;
	struct pollfd helper = {.events = POLLIN};
	int fd = client_connect(fixture->port);
	char data[300];

	client_request(fd, fixture->port, "GET /download?size=1000", WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, 1);
	assert_int_equal(write(fixture->helper_fd, data, 100), 100);
	assert_true(recv(fd, data, sizeof(data), 0) > 0);
	close(fd);
	helper.fd = fixture->helper_fd;
	assert_int_equal(poll(&helper, 1, DEADLINE_MS), 1);
	assert_true(helper.revents & POLLHUP);
}

/* Uploads to a descriptor. */

/* Reads the framed chunks of an upload until its end; -1 if the other side closed before. */
struct drain {
	int fd;
	uint64_t size;
	bool slowly;
	bool ended;
	bool differs;
};

static void *drain_main(void *arg)
{
	struct drain *drain = arg;
	unsigned char *data = mem_new(65536);
	uint32_t len;

	while (fd_read_full(drain->fd, &len, sizeof(len)) == 0) {
		if (len == 0) {
			drain->ended = true;
			break;
		}
		while (len > 0) {
			size_t part = len < 65536 ? len : 65536;

			if (fd_read_full(drain->fd, data, part) < 0)
				goto out;
			for (size_t i = 0; i < part; i++)
				drain->differs |= data[i] != pattern(drain->size + i);
			drain->size += part;
			len -= (uint32_t)part;
		}
		if (drain->slowly)
			usleep(100);
	}
out:
	free(data);
	return NULL;
}

static void send_pattern(int fd, uint64_t from, uint64_t to)
{
	unsigned char data[8192];

	while (from < to) {
		size_t len = to - from < sizeof(data) ? to - from : sizeof(data);

		for (size_t i = 0; i < len; i++)
			data[i] = pattern(from + i);
		client_send(fd, data, len);
		from += len;
	}
}

static void begin_upload(struct fixture *fixture, int fd, const char *line, uint64_t size)
{
	client_print(fd,
		"%s HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_TOKEN "Content-Length: %llu\r\n\r\n",
		line, fixture->port, (unsigned long long)size);
}

static void upload(struct fixture *fixture, int fd, uint64_t size, bool slowly)
{
	unsigned before = fixture->entered;
	struct drain drain = {.slowly = slowly};
	pthread_t thread;

	begin_upload(fixture, fd, "PUT /upload", size);
	fixture_wait(fixture, &fixture->entered, before + 1);
	drain.fd = take_fd(&fixture->helper_fd);
	assert_int_equal(pthread_create(&thread, NULL, drain_main, &drain), 0);
	send_pattern(fd, 0, size);
	expect_reply(fd, 201, "{\"complete\":true}");
	pthread_join(thread, NULL);
	assert_true(drain.ended);
	assert_false(drain.differs);
	assert_int_equal(drain.size, size);
	close(drain.fd);
}

static void an_upload_arrives_whole_and_in_order(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	upload(fixture, fd, BIG, false);
	upload(fixture, fd, 3000000, true);
	upload(fixture, fd, 1, false);
	upload(fixture, fd, 0, false);
	expect_alive(fixture, fd);
	assert_int_equal(fixture->finished, 4);
	close(fd);
}

static void a_chunked_upload_arrives_whole(void **state)
{
	struct fixture *fixture = *state;
	struct drain drain = {0};
	pthread_t thread;
	int fd = client_connect(fixture->port);

	client_print(fd,
		"PUT /upload HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_TOKEN
		"Transfer-Encoding: chunked\r\n\r\n",
		fixture->port);
	fixture_wait(fixture, &fixture->entered, 1);
	drain.fd = take_fd(&fixture->helper_fd);
	assert_int_equal(pthread_create(&thread, NULL, drain_main, &drain), 0);
	for (uint64_t at = 0; at < 2000000; at += 10000) {
		client_print(fd, "%x\r\n", 10000);
		send_pattern(fd, at, at + 10000);
		client_print(fd, "\r\n");
	}
	client_print(fd, "0\r\n\r\n");
	expect_reply(fd, 201, "{\"complete\":true}");
	pthread_join(thread, NULL);
	assert_int_equal(drain.size, 2000000);
	assert_false(drain.differs);
	expect_alive(fixture, fd);
	close(drain.fd);
	close(fd);
}

static void an_upload_whose_client_leaves_is_finished_as_incomplete(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	begin_upload(fixture, fd, "PUT /upload", BIG);
	fixture_wait(fixture, &fixture->entered, 1);
	send_pattern(fd, 0, 1000);
	close(fd);
	fixture_wait(fixture, &fixture->finished, 1);
	assert_false(fixture->complete);
}

static void an_upload_whose_helper_gives_up_is_answered_at_once(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	/* A long rest: the answer comes in the middle, and the connection ends. */
	begin_upload(fixture, fd, "PUT /upload", BIG);
	fixture_wait(fixture, &fixture->entered, 1);
	close(take_fd(&fixture->helper_fd));
	send_pattern(fd, 0, 100000);
	expect_reply(fd, 507, NULL);
	assert_true(client_sees_close(fd));
	close(fd);
	assert_false(fixture->complete);
	/* A short rest is dropped, and the connection goes on. */
	fd = client_connect(fixture->port);
	begin_upload(fixture, fd, "PUT /upload", 20000);
	fixture_wait(fixture, &fixture->entered, 2);
	close(take_fd(&fixture->helper_fd));
	send_pattern(fd, 0, 20000);
	expect_reply(fd, 507, NULL);
	expect_alive(fixture, fd);
	close(fd);
}

static void a_refused_upload_is_answered_before_its_body(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);
	char line[16] = "";

	begin_upload(fixture, fd, "PUT /refuse", BIG);
	expect_reply(fd, 409, NULL);
	assert_true(client_sees_close(fd));
	close(fd);
	fd = client_connect(fixture->port);
	begin_upload(fixture, fd, "PUT /refuse", 5000);
	send_pattern(fd, 0, 5000);
	expect_reply(fd, 409, NULL);
	expect_alive(fixture, fd);
	client_print(fd,
		"PUT /refuse HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_TOKEN
		"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
		fixture->port);
	assert_int_equal(recv(fd, line, 12, MSG_WAITALL), 12);
	assert_string_equal(line, "HTTP/1.1 409");
	close(fd);
}

/* Uploads that a handler reads. */

static void a_handler_reads_a_raw_body(void **state)
{
	struct fixture *fixture = *state;
	uint64_t sum = 0;
	char want[80];
	int fd = client_connect(fixture->port);

	for (uint64_t i = 0; i < BIG; i++)
		sum += pattern(i);
	begin_upload(fixture, fd, "PUT /read", BIG);
	send_pattern(fd, 0, BIG);
	snprintf(want, sizeof(want), "{\"size\":%u,\"sum\":%llu}", BIG, (unsigned long long)sum);
	expect_reply(fd, 200, want);
	begin_upload(fixture, fd, "PUT /read", 0);
	expect_reply(fd, 200, "{\"size\":0,\"sum\":0}");
	client_print(fd,
		"PUT /read HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_TOKEN
		"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
		fixture->port);
	client_send(fd, "\1\2", 2);
	expect_reply(fd, 200, "{\"size\":2,\"sum\":3}");
	expect_alive(fixture, fd);
	close(fd);
}

static void a_handler_that_reads_learns_that_the_client_left(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	begin_upload(fixture, fd, "PUT /read", BIG);
	send_pattern(fd, 0, 1000);
	fixture_wait(fixture, &fixture->entered, 1);
	close(fd);
	fixture_wait(fixture, &fixture->finished, 1);
	assert_int_equal(fixture->read_result, -EPIPE);
}

static void a_handler_may_stop_reading(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	begin_upload(fixture, fd, "PUT /read?stop=1000", BIG);
	send_pattern(fd, 0, 400000);
	expect_reply(fd, 409, NULL);
	assert_true(client_sees_close(fd));
	close(fd);
	/* The client waits for the answer with most of its body unsent. */
	fd = client_connect(fixture->port);
	begin_upload(fixture, fd, "PUT /read?stop=1000", BIG);
	send_pattern(fd, 0, 1000);
	expect_reply(fd, 409, NULL);
	close(fd);
	fd = client_connect(fixture->port);
	begin_upload(fixture, fd, "PUT /read?stop=1000", 30000);
	send_pattern(fd, 0, 30000);
	expect_reply(fd, 409, NULL);
	expect_alive(fixture, fd);
	close(fd);
}

static void only_so_many_handlers_read_at_once(void **state)
{
	struct fixture fixture;
	int first, second, other;

	(void)state;
	fixture_open(&fixture, 4, 0);
	first = client_connect(fixture.port);
	begin_upload(&fixture, first, "PUT /read", 2);
	send_pattern(first, 0, 1);
	for (uint64_t seen = 0; seen < 1;) {
		usleep(1000);
		pthread_mutex_lock(&fixture.lock);
		seen = fixture.uploaded;
		pthread_mutex_unlock(&fixture.lock);
	}
	second = client_connect(fixture.port);
	begin_upload(&fixture, second, "PUT /read", 2);
	send_pattern(second, 0, 2);
	expect_reply(second, 429, NULL);
	/* Another owner has a share of its own. */
	other = client_connect(fixture.port);
	client_print(other,
		"PUT /read HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nX-API-Key: " OTHER_TOKEN
		"\r\nContent-Length: 2\r\n\r\n",
		fixture.port);
	send_pattern(other, 0, 2);
	expect_reply(other, 200, NULL);
	close(other);
	send_pattern(first, 1, 2);
	expect_reply(first, 200, NULL);
	begin_upload(&fixture, second, "PUT /read", 2);
	send_pattern(second, 0, 2);
	expect_reply(second, 200, NULL);
	close(first);
	close(second);
	fixture_close(&fixture);
}

/* The end of the server. */

static void closing_waits_for_running_requests_and_ends_streams(void **state)
{
	struct fixture fixture;
	int stream, block;
	pthread_t thread;

	(void)state;
	fixture_open(&fixture, 0, 0);
	stream = client_connect(fixture.port);
	client_request(stream, fixture.port, "GET /stream", WITH_TOKEN, NULL);
	block = client_connect(fixture.port);
	client_request(block, fixture.port, "GET /block", WITH_TOKEN, NULL);
	fixture_wait(&fixture, &fixture.entered, 2);
	assert_int_equal(
		pthread_create(&thread, NULL, (void *(*)(void *))(void *)fixture_close, &fixture),
		0);
	expect_reply(stream, 200, "");
	fixture_let_go(&fixture, 1);
	expect_reply(block, 200, "late");
	pthread_join(thread, NULL);
	assert_true(client_sees_close(stream));
	assert_true(client_sees_close(block));
	close(stream);
	close(block);
	assert_int_equal(fixture.gone, 1);
}

/* Without its answer at once, the server would cut the connection after a grace that is longer than any test. */
static void closing_answers_what_is_held_until_then_at_once(void **state)
{
	struct fixture fixture;
	int fds[3];

	(void)state;
	fixture_open(&fixture, 0, 0);
	for (unsigned i = 0; i < array_len(fds); i++) {
		fds[i] = client_connect(fixture.port);
		client_request(fds[i], fixture.port, "GET /hold/until-close", WITH_TOKEN, NULL);
		fixture_wait(&fixture, &fixture.entered, i + 1);
	}
	server_close(fixture.server, 1000 * 1000);
	fixture.server = NULL;
	for (unsigned i = 0; i < array_len(fds); i++) {
		expect_reply(fds[i], 200, "asked too early");
		close(fds[i]);
	}
	fixture_close(&fixture);
}

static void closing_gives_up_on_held_requests_after_the_grace(void **state)
{
	struct fixture fixture;
	int hold, upload_fd, download_fd, read_fd, helper_fd;

	(void)state;
	fixture_open(&fixture, 0, 0);
	hold = client_connect(fixture.port);
	client_request(hold, fixture.port, "GET /hold", WITH_TOKEN, NULL);
	fixture_wait(&fixture, &fixture.entered, 1);
	download_fd = client_connect(fixture.port);
	client_request(download_fd, fixture.port, "GET /download?size=10", WITH_TOKEN, NULL);
	fixture_wait(&fixture, &fixture.entered, 2);
	helper_fd = take_fd(&fixture.helper_fd);
	upload_fd = client_connect(fixture.port);
	begin_upload(&fixture, upload_fd, "PUT /upload", BIG);
	fixture_wait(&fixture, &fixture.entered, 3);
	send_pattern(upload_fd, 0, 1000);
	read_fd = client_connect(fixture.port);
	begin_upload(&fixture, read_fd, "PUT /read", BIG);
	fixture_wait(&fixture, &fixture.entered, 4);
	server_close(fixture.server, 50);
	fixture.server = NULL;
	assert_int_equal(fixture.gone, 1);
	assert_int_equal(fixture.finished, 2);
	assert_false(fixture.complete);
	assert_true(client_sees_close(hold));
	/* Whoever holds it may come later, even now. */
	assert_int_equal(fixture.released, 0);
	request_answer_text(fixture.held, 200, "text/plain", "to nobody");
	request_release(fixture.held);
	assert_int_equal(fixture.released, 1);
	fixture_close(&fixture);
	close(hold);
	close(upload_fd);
	close(download_fd);
	close(helper_fd);
	close(read_fd);
}

struct hammer {
	struct fixture *fixture;
	unsigned seed;
	unsigned sent;
};

static int connect_if_open(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

/* A request of some kind, maybe cut; its length. */
static int make_request(struct hammer *hammer, char *text, size_t size)
{
	static const char *const lines[] = {"GET /plain", "GET /hold/shortly",
		"GET /stream?endless=1", "GET /stream?ping=1", "POST /json", "GET /none",
		"PUT /read", "PUT /upload?orphan=1", "GET /download?orphan=1&size=10",
		"GET /download?orphan=1"};
	const char *line = lines[(unsigned)rand_r(&hammer->seed) % array_len(lines)];
	int len = snprintf(text, size, "%s HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON "%s\r\n%s",
		line, hammer->fixture->port, line[0] == 'P' ? "Content-Length: 2\r\n" : "",
		line[0] == 'P' ? "{}" : "");

	return rand_r(&hammer->seed) % 4 == 0 ? rand_r(&hammer->seed) % len : len;
}

/* Requests until the server is gone. */
static void *hammer_main(void *arg)
{
	struct hammer *hammer = arg;
	int fd;

	while ((fd = connect_if_open(hammer->fixture->port)) >= 0) {
		char text[512], data[4096];

		for (int i = rand_r(&hammer->seed) % 4; i >= 0; i--) {
			int len = make_request(hammer, text, sizeof(text));

			if (send(fd, text, (size_t)len, MSG_NOSIGNAL) < 0)
				break;
			hammer->sent++;
			if (recv(fd, data, sizeof(data), MSG_DONTWAIT) < 0 && errno != EAGAIN)
				break;
		}
		if (rand_r(&hammer->seed) % 2)
			usleep((unsigned)rand_r(&hammer->seed) % 2000);
		close(fd);
	}
	return NULL;
}

static void closing_in_the_middle_of_a_storm_is_orderly(void **state)
{
	enum { THREADS = 4, ROUNDS = 5 };

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct hammer hammers[THREADS];
		pthread_t threads[THREADS];
		struct fixture fixture;

		fixture_open(&fixture, 0, 0);
		for (unsigned i = 0; i < THREADS; i++) {
			hammers[i] = (struct hammer){&fixture, round * THREADS + i, 0};
			assert_int_equal(
				pthread_create(&threads[i], NULL, hammer_main, &hammers[i]), 0);
		}
		usleep(150000);
		server_close(fixture.server, round % 2 ? 0 : 20);
		for (unsigned i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			assert_true(hammers[i].sent > 0);
		}
		fixture.server = NULL;
		fixture_close(&fixture);
	}
}

#define server_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		server_test(a_held_request_is_answered_when_it_is_released),
		server_test(a_held_request_can_end_in_an_error),
		server_test(a_request_may_be_released_before_its_handler_returns),
		server_test(the_holder_is_told_once_that_the_client_left),
		server_test(bytes_sent_ahead_do_not_make_a_held_client_gone),
		server_test(a_stream_sends_what_is_offered_and_ends_cleanly),
		server_test(a_quiet_stream_sends_heartbeats),
		server_test(a_reader_that_vanishes_from_a_quiet_stream_is_noticed),
		server_test(a_slow_reader_holds_back_the_producer),
		server_test(a_download_gives_exactly_what_was_promised),
		server_test(a_download_that_ends_early_does_not_look_whole),
		server_test(the_helper_sees_that_the_downloading_client_left),
		server_test(an_upload_arrives_whole_and_in_order),
		server_test(a_chunked_upload_arrives_whole),
		server_test(an_upload_whose_client_leaves_is_finished_as_incomplete),
		server_test(an_upload_whose_helper_gives_up_is_answered_at_once),
		server_test(a_refused_upload_is_answered_before_its_body),
		server_test(a_handler_reads_a_raw_body),
		server_test(a_handler_that_reads_learns_that_the_client_left),
		server_test(a_handler_may_stop_reading),
		cmocka_unit_test(only_so_many_handlers_read_at_once),
		cmocka_unit_test(closing_waits_for_running_requests_and_ends_streams),
		cmocka_unit_test(closing_answers_what_is_held_until_then_at_once),
		cmocka_unit_test(closing_gives_up_on_held_requests_after_the_grace),
		cmocka_unit_test(closing_in_the_middle_of_a_storm_is_orderly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
