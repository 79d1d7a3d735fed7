/* SPDX-License-Identifier: Apache-2.0 */
/* The port that the code of an app names. */
#pragma once

#include "launch/app/framework.h"

/* The port that an entry file listens on whatever PORT says, and where it says so; 0: none. */
uint16_t code_port_find(const char *text, enum app_runtime runtime, const char **ret_at);
