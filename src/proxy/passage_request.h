/* SPDX-License-Identifier: Apache-2.0 */
/* From the head of a request to the way that it goes: what it demands is judged, and its way is found on a worker. */
#pragma once

#include "proxy/passage.h"

/* Waits for the next request of the client. */
void passage_request_begin(struct passage *passage);

/* In the state HEAD: whether something moved. */
bool passage_request_move(struct passage *passage);

/* Has the way of the request found, maybe once more. */
void passage_request_ask(struct passage *passage);

/* On a worker's thread, which has the passage to itself: finds the way. */
void passage_request_find(struct passage *passage);

/* The way was found: takes it. False if nobody waits for that any more. */
bool passage_request_found(struct passage *passage);
