/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections and requests there may be: in all, of an address, to one target, of one owner. */
#pragma once

#include "base/mem.h"

#include <stdbool.h>

struct proxy;
struct proxy_conn;

/* Takes a place for one more connection; false if there is none. */
bool proxy_limits_admit(struct proxy *proxy);
void proxy_limits_leave(struct proxy *proxy);

/*
 * Counts a connection for its source until it ends. A connection over the limit is marked, to be
 * told so; false if there are too many of those as well.
 */
bool proxy_limits_count_source(struct proxy *proxy, struct proxy_conn *conn);
void proxy_limits_uncount_source(struct proxy *proxy, struct proxy_conn *conn);

/* Counts a request for its source. In how many seconds it may come again; 0: it may be served. */
unsigned proxy_limits_pace(struct proxy *proxy, const struct proxy_conn *conn);

/* Counts a connection for what its way leads to, and for whose that is, until it leads elsewhere or leaves. -EDQUOT: one
 * of them has enough; -EAGAIN: all owners together have. */
int proxy_limits_claim(struct proxy *proxy, struct proxy_conn *conn) must_check;
