/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxy is opened with: its limits, and its owner's decisions. */
#pragma once

#include "proxy/message/proxy_way.h"

#include <stdatomic.h>

struct listener;
struct proxy;

struct proxy_config {
	struct proxy *proxy;		 /* set by proxy_open() */
	const struct listener *listener; /* borrowed */
	/* Where there are as many connections as may be, those without a request give way to others, strangers first.
	 * A quarter at most leads to what one owner has, and a quarter is for those that lead nowhere yet. */
	unsigned threads, max_workers, max_connections;
	unsigned max_per_source, max_per_key; /* connections of an address; that lead to a key */
	/* Of an address that is not this machine's; ten times that at once. 0: any number. */
	unsigned requests_per_second;
	/*
	 * Timeouts: until an answer begins; where a peer does not read; and where no bytes pass, in
	 * an answer that has begun or a WebSocket.
	 */
	uint64_t answer_ms, stall_ms, quiet_ms;
	uint64_t wake_ms; /* how long a request waits for a wake, in its lane too; then 503 */
	void *context;
	const atomic_uint_fast64_t *generation; /* changes when a way may have ceased to be */

	/* On a worker: finds the way. Must not wait for anything that takes long. */
	void (*find)(void *context, const struct proxy_visit *visit, struct proxy_way *ret_way);
	/* Makes an answer of a refusal: a page, or something for programs. On any thread, must not block. */
	void (*refuse)(
		const struct proxy_refusal *refusal, bool is_page, struct proxy_way *ret_way);
	/* On a worker: returns when it is awake, or cannot be woken (find will say why). */
	void (*wake)(void *context, const char *key);
	/* Whether a way in use is still open, asked after a change of generation; on a loop's thread: a look-up. */
	bool (*is_granted)(void *context, const struct proxy_way *way);
	/* What leads to `key` was used, told now and then; on a loop's thread, must not block. */
	void (*used)(void *context, const char *key);
};
