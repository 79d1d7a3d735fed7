/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the keeper (wire/keeper.h). Each connection has one request at a time: a caller takes
 * an idle connection or opens another, so calls of several threads run side by side and each reads
 * as a plain function call.
 */
#pragma once

#include "driver/native/keeper_watch.h"
#include "wire/keeper.h"

#include <pthread.h>

#define KEEPER_CLIENT_IDLE_MAX	 4 /* more are opened when needed, and closed after */
#define KEEPER_CLIENT_TIMEOUT_MS 30000

struct keeper_client {
	pthread_mutex_t lock;
	int idle[KEEPER_CLIENT_IDLE_MAX];
	size_t idle_count;
	struct keeper_watch *watch; /* NULL before the keeper has said hello */
	struct sockaddr_un address;
};

/* 0 or -errno. It connects to nobody yet. */
int keeper_client_init(struct keeper_client *client, const char *socket_path) must_check;
void keeper_client_fini(struct keeper_client *client);

/* From now on calls fail as soon as the keeper is gone or hangs. One that hangs for longer than patience_ms counts as gone. */
int keeper_client_watch(struct keeper_client *client, uint64_t patience_ms, struct err *err)
	must_check;

/* Whether the keeper can be asked, as far as is known. */
int keeper_client_check(struct keeper_client *client, struct err *err) must_check;

/* Sends a request and waits for the answer; ret_fds gets the descriptors that came with it. */
int keeper_client_call_with(struct keeper_client *client, const struct keeper_request *request,
	struct keeper_answer *answer, int *ret_fds, size_t count, struct err *err) must_check;

/* Does the same; ret_fd gets the one descriptor that came with it, if wanted. */
int keeper_client_call(struct keeper_client *client, const struct keeper_request *request,
	struct keeper_answer *answer, int *ret_fd, struct err *err) must_check;

/*
 * Sends requests that have no answer. Does not wait: one that is lost only makes the next build
 * slower.
 */
void keeper_client_order(
	struct keeper_client *client, const struct keeper_request *orders, size_t count);

/* Whether a keeper listens there: 0, or -errno (-ECONNREFUSED, -ENOENT: there is none). */
int keeper_client_probe(const char *socket_path) must_check;

/* Whether it answers too, within so many ms: -ETIMEDOUT if it only listens. */
int keeper_client_ask(const char *socket_path, int ms) must_check;
