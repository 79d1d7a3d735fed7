/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about a failure, in words of this program. The daemon's remedies name routes of its
 * API, because most of its clients know nothing else.
 */
#pragma once

#include <stddef.h>

/* Writes the remedy with commands in the place of routes; "" if it names one that no command stands for. */
void hint_from_remedy(const char *remedy, char *ret_hint, size_t size);
