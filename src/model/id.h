/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifiers: ULIDs in lower case, 26 characters of Crockford's alphabet. They sort by time of
 * birth, carry 80 random bits, and fit into one DNS label.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ID_LEN 26

void id_new(int64_t wall_ms, char id[ID_LEN + 1]);

/* Whether text could be an id: 26 characters of 0-9a-z. Clients may choose their own. */
bool id_is_valid(const char *text);
