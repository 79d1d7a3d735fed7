/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of a proxy share. */
#pragma once

#include "proxy/passage.h"

/* Takes a place for one more connection; false if there is none. */
bool proxy_admit(struct proxy *proxy);
void proxy_leave(struct proxy *proxy);

/*
 * Counts a connection for its source until it leaves. One that is too many is marked, to be told so; false if there
 * are enough of those as well.
 */
bool proxy_welcome(struct proxy *proxy, struct passage *passage);
void proxy_bid_farewell(struct proxy *proxy, struct passage *passage);

/* Counts a request for its source. In how many seconds it may come again; 0: it may be served. */
unsigned proxy_pace(struct proxy *proxy, const struct passage *passage);

/* Counts a connection for what its way leads to, until it leads elsewhere or leaves; false if that has enough. */
bool proxy_claim(struct proxy *proxy, struct passage *passage);

/* Has its way found on a worker; proxy_loop_found() follows. */
void proxy_find(struct proxy *proxy, struct passage *passage);
