/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of the proxy: accepts, waits, and moves the passages that are its own. */
#pragma once

#include "proxy/passage.h"

struct proxy_loop;

int proxy_loop_open(struct proxy *proxy, const struct proxy_config *config,
	struct proxy_loop **ret_loop, struct err *err) must_check;

/* Ends the thread; no passage may be with a worker any more. */
void proxy_loop_stop(struct proxy_loop *loop);
void proxy_loop_free(struct proxy_loop *loop);

/* For passages, on the loop's thread. */
int proxy_loop_watch(struct proxy_loop *loop, struct side *side) must_check;
void proxy_loop_unwatch(struct proxy_loop *loop, struct side *side);
void proxy_loop_again(
	struct proxy_loop *loop, struct side *side); /* tells once more what it is ready for */
void proxy_loop_find(struct proxy_loop *loop, struct passage *passage);
void proxy_loop_drop(struct proxy_loop *loop, struct passage *passage);
void proxy_loop_hurry(struct proxy_loop *loop); /* one of them is to ask again soon */

/* From any thread: the way of a passage was found. */
void proxy_loop_found(struct proxy_loop *loop, struct passage *passage);
