/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of a loop (arg): accepts them, and looks after their connections now and then. */
#pragma once

#include <stdint.h>

void proxy_clients_accept(void *arg, uint32_t events);
void proxy_clients_tick(void *arg);
