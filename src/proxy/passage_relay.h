/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way to the app, and the answer on its way back. */
#pragma once

#include "proxy/passage.h"

/* The app is connected: sends it the head. */
void passage_relay_start(struct passage *passage);

/* In the state RELAY: whether something moved. */
bool passage_relay_move(struct passage *passage);
