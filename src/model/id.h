/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifiers: ULIDs in lower case, 26 characters of Crockford's alphabet. They sort by time of
 * birth, those of one millisecond in the order in which this process made them, and fit into one
 * DNS label. The first of a millisecond has 79 random bits, each that follows is up to 40 random
 * bits greater. They are names: what is secret has a secret of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ID_LEN 26

void id_new(int64_t wall_ms, char id[ID_LEN + 1]);

/* Whether text could be an id: 26 characters of 0-9a-z. Clients may choose their own. */
bool id_is_valid(const char *text);
