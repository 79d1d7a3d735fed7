/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of our own, and the end of a connection after its last one. */
#pragma once

#include "proxy/passage.h"

/* The way is an answer: gives it. */
void passage_answer_found(struct passage *passage);

/* Makes the way an answer that refuses. */
void passage_answer_prepare(struct passage *passage, const struct proxy_refusal *refusal);

/* Refuses, or cuts the connection if an answer has begun. */
void passage_answer_refuse(struct passage *passage, const struct proxy_refusal *refusal);

/*
 * In the state LAST: what is left is sent; then the client hears the end, and may not have read it before we close.
 * Whether something moved.
 */
bool passage_answer_move(struct passage *passage);
