/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and times the way people write and read them, and sizes as they write them. Pure functions. */
#pragma once

#include "base/mem.h"

#include <stdint.h>

#define HUMAN_LEN 24 /* holds every text below */

/* The one largest unit: "12s", "5m", "3h", "9d"; a time in the future is "0s". */
void human_age(int64_t age_ms, char text[HUMAN_LEN]);

/* "10s", "500ms", "2m", "1h", "1d" or a bare number of seconds. -EINVAL, or -ERANGE past ten years. */
int human_parse_duration(const char *text, uint64_t *ret_ms) must_check;

/* A number of bytes, or one with Ki, Mi, Gi, Ti or Pi. */
int human_parse_bytes(const char *text, uint64_t *ret_bytes) must_check;

/* RFC 3339 in UTC, as clock_format writes it; the fraction may be absent. */
int human_parse_time(const char *text, int64_t *ret_wall_ms) must_check;
