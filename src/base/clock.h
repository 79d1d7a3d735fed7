/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two clocks. Deadlines use the steady clock, which cannot be set (it counts suspended time too);
 * what people read and what the database keeps uses the wall clock.
 */
#pragma once

#include <stdint.h>

#define CLOCK_TEXT_LEN 25 /* "2026-01-02T03:04:05.678Z" and its NUL */

uint64_t clock_steady_us(void);
uint64_t clock_steady_ms(void);
int64_t clock_wall_ms(void);

/* How long ago something was. 0 if it was noted by a thread that looked at the clock after us. */
static inline uint64_t clock_passed(uint64_t since, uint64_t now)
{
	return now > since ? now - since : 0;
}

/* RFC 3339 in UTC with milliseconds. */
void clock_format(int64_t wall_ms, char text[CLOCK_TEXT_LEN]);
