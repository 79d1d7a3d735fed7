/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket: bytes in both directions until one side ends. */
#pragma once

#include "proxy/passage.h"

/* The app has agreed. */
void passage_tunnel_start(struct passage *passage);

/* In the state TUNNEL: whether something moved. */
bool passage_tunnel_move(struct passage *passage);
