/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket_fixture.h"

#include "base/fd.h"
#include "base/log.h"
#include "http/server/server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void count(struct site *site, unsigned *counter)
{
	++*counter;
	pthread_cond_broadcast(&site->cond);
}

static void on_open(void *arg, struct websocket *websocket)
{
	struct site *site = arg;

	pthread_mutex_lock(&site->lock);
	websocket_unref(site->websocket);
	site->websocket = websocket_ref(websocket);
	count(site, &site->opened);
	pthread_mutex_unlock(&site->lock);
}

static void on_message(void *arg, bool is_text, const uint8_t *data, size_t len)
{
	struct site *site = arg;

	pthread_mutex_lock(&site->lock);
	assert_int_equal(data[len], '\0');
	site->last_was_text = is_text;
	if (site->pauses)
		websocket_pause(site->websocket, true);
	if (site->is_echo)
		assert_int_not_equal(websocket_send(site->websocket, is_text, data, len), -EAGAIN);
	count(site, &site->messages);
	pthread_mutex_unlock(&site->lock);
}

static void on_room(void *arg)
{
	struct site *site = arg;

	pthread_mutex_lock(&site->lock);
	count(site, &site->rooms);
	pthread_mutex_unlock(&site->lock);
}

static void on_gone(void *arg)
{
	struct site *site = arg;

	pthread_mutex_lock(&site->lock);
	count(site, &site->gone);
	pthread_mutex_unlock(&site->lock);
}

static int handle_websocket(struct request *req, void *context, struct err *err)
{
	static const struct websocket_events events = {on_open, on_message, on_room, on_gone};
	int r = request_answer_websocket(req, "chat", CAPACITY, &events, context, err);

	if (r == 0 && request_query(req, "fail"))
		return err_set(err, ERR_CONFLICT, "thought better of it");
	return r;
}

static int handle_evict(struct request *req, void *context, struct err *err)
{
	(void)context;
	(void)err;
	request_evict(req, request_param(req, "id"));
	request_answer_empty(req, 204);
	return 0;
}

static int admit(void *context, const struct credential *credential, const struct route *route,
	struct principal *ret, struct err *err)
{
	struct site *site = context;

	(void)route;
	snprintf(ret->token_id, sizeof(ret->token_id), "one");
	ret->expires_at_ms = atomic_load(&site->expires_at_ms);
	return strcmp(credential->token, TOKEN) == 0
		       ? 0
		       : err_set(err, ERR_UNAUTHENTICATED, "no such token");
}

void site_open(struct site *site, unsigned max_connections)
{
	static const struct route routes[] = {
		{"GET", "/socket", handle_websocket, ROUTE_WEBSOCKET, 0, NULL},
		{"DELETE", "/token/{id}", handle_evict, 0, 0, NULL}};
	struct server_config config = {
		.bind = "127.0.0.1:0",
		.routes = routes,
		.route_count = array_len(routes),
		.context = site,
		.admit = admit,
		.max_connections = max_connections,
	};
	struct err err = {0};

	*site = (struct site){.is_echo = true};
	pthread_mutex_init(&site->lock, NULL);
	pthread_cond_init(&site->cond, NULL);
	assert_int_equal(server_open(&config, &site->server, &err), 0);
	site->port = server_port(site->server);
}

void site_close(struct site *site, unsigned grace_ms)
{
	server_close(site->server, grace_ms);
	/* Each had its end, and after it there is no sending. */
	if (site->websocket) {
		assert_int_equal(websocket_send(site->websocket, true, "x", 1), -EPIPE);
		websocket_pause(site->websocket, false);
		websocket_close(site->websocket, WEBSOCKET_NORMAL, NULL);
	}
	assert_true(site->gone >= site->opened);
	websocket_unref(site->websocket);
	pthread_cond_destroy(&site->cond);
	pthread_mutex_destroy(&site->lock);
}

int site_setup(void **state)
{
	struct site *site = mem_new(sizeof(*site));

	log_open("test", LOG_ERROR + 1);
	site_open(site, 0);
	*state = site;
	return 0;
}

int site_teardown(void **state)
{
	site_close(*state, 5000);
	free(*state);
	return 0;
}

void site_wait(struct site *site, const unsigned *counter, unsigned want)
{
	fixture_wait_for(&site->lock, &site->cond, counter, want);
}

void site_set(struct site *site, bool *flag, bool value)
{
	pthread_mutex_lock(&site->lock);
	*flag = value;
	pthread_mutex_unlock(&site->lock);
}

bool site_saw_text(struct site *site)
{
	bool was_text;

	pthread_mutex_lock(&site->lock);
	was_text = site->last_was_text;
	pthread_mutex_unlock(&site->lock);
	return was_text;
}

unsigned site_count(struct site *site, const unsigned *counter)
{
	unsigned n;

	pthread_mutex_lock(&site->lock);
	n = *counter;
	pthread_mutex_unlock(&site->lock);
	return n;
}

/* The client. */

int site_connect(struct site *site)
{
	unsigned before = site_count(site, &site->opened);
	int fd = client_connect(site->port);
	struct reply reply;

	client_request(fd, site->port, "GET /socket", UPGRADE, NULL);
	client_receive(fd, &reply, false);
	assert_int_equal(reply.status, 101);
	reply_fini(&reply);
	site_wait(site, &site->opened, before + 1);
	return fd;
}

size_t frame_make(uint8_t *out, uint8_t first, const void *data, size_t len)
{
	static const uint8_t mask[] = {0x12, 0x34, 0x56, 0x78};
	size_t at = 2;

	out[0] = first;
	out[1] = 0x80 | (len < 126 ? (uint8_t)len : len < 65536 ? 126 : 127);
	for (int i = len < 126 ? 0 : len < 65536 ? 2 : 8; i > 0; i--)
		out[at++] = (uint8_t)((uint64_t)len >> 8 * (i - 1));
	memcpy(out + at, mask, 4);
	at += 4;
	for (size_t i = 0; i < len; i++)
		out[at + i] = ((const uint8_t *)data)[i] ^ mask[i % 4];
	return at + len;
}

void frame_send(int fd, uint8_t first, const void *data, size_t len)
{
	uint8_t *out = malloc(len + 14);

	assert_non_null(out);
	client_send(fd, out, frame_make(out, first, data, len));
	free(out);
}

void frame_receive(int fd, struct frame *frame)
{
	uint8_t header[10];
	unsigned more;

	frame->opcode = -1;
	frame->len = 0;
	if (fd_read_full(fd, header, 2) < 0)
		return;
	assert_int_equal(header[0] & 0x70, 0);
	assert_true(header[0] & FIN);
	assert_false(header[1] & 0x80); /* a server does not mask */
	more = header[1] < 126 ? 0 : header[1] == 126 ? 2 : 8;
	frame->len = more ? 0 : header[1];
	if (fd_read_full(fd, header + 2, more) < 0)
		return;
	for (unsigned i = 0; i < more; i++)
		frame->len = frame->len << 8 | header[2 + i];
	assert_true(frame->len < sizeof(frame->data));
	if (fd_read_full(fd, frame->data, frame->len) < 0)
		return;
	frame->data[frame->len] = '\0';
	frame->opcode = header[0] & 15;
}

void frame_expect(int fd, int opcode, const void *data, size_t len)
{
	struct frame *frame = malloc(sizeof(*frame));

	assert_non_null(frame);
	frame_receive(fd, frame);
	assert_int_equal(frame->opcode, opcode);
	assert_int_equal(frame->len, len);
	assert_memory_equal(frame->data, data, len);
	free(frame);
}

void frame_expect_close(int fd, unsigned status)
{
	struct frame *frame = malloc(sizeof(*frame));

	assert_non_null(frame);
	frame_receive(fd, frame);
	assert_int_equal(frame->opcode, CLOSE);
	if (status == 0)
		assert_int_equal(frame->len, 0);
	else
		assert_int_equal((uint8_t)frame->data[0] << 8 | (uint8_t)frame->data[1], status);
	frame_receive(fd, frame);
	assert_int_equal(frame->opcode, -1);
	free(frame);
}
