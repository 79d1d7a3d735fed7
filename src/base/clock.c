/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_steady_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_steady_ms(void)
{
	return clock_steady_us() / 1000;
}

int64_t clock_wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_format(int64_t wall_ms, char text[CLOCK_TEXT_LEN])
{
	int millis = (int)((wall_ms % 1000 + 1000) % 1000); /* never negative */
	time_t seconds = (time_t)((wall_ms - millis) / 1000);
	struct tm tm;
	char date[20];

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, CLOCK_TEXT_LEN, "%s.%03dZ", date, millis);
}
