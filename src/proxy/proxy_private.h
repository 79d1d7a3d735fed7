/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of a proxy share. */
#pragma once

#include "proxy/passage.h"

/* Takes a place for one more connection; false if there is none. */
bool proxy_admit(struct proxy *proxy);
void proxy_leave(struct proxy *proxy);

/* Has its way found on a worker; proxy_loop_found() follows. */
void proxy_find(struct proxy *proxy, struct passage *passage);
