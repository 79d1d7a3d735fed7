/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of our own, and the end of a connection after its last one. */
#pragma once

#include "proxy/connection/proxy_conn_state.h"

/* The way is an answer: gives it. */
void proxy_conn_answer_found(struct proxy_conn *conn);

/* Makes the way an answer that refuses. */
void proxy_conn_answer_prepare(struct proxy_conn *conn, const struct proxy_refusal *refusal);

/* Refuses, or cuts the connection if an answer has begun. */
void proxy_conn_answer_refuse(struct proxy_conn *conn, const struct proxy_refusal *refusal);

/*
 * In the state LAST: what is left is sent; then the client hears the end, and may not have read it before we close.
 * Whether something moved.
 */
bool proxy_conn_answer_move(struct proxy_conn *conn);
