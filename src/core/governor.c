/* SPDX-License-Identifier: Apache-2.0 */
#include "core/governor.h"

#include "base/clock.h"

#define BYTES_PER_MS (256ll * 1024)	/* 256 MiB a second */
#define BYTES_MAX    (8 * BYTES_PER_MS) /* saved up in quiet times */
#define ROUND_MS     4

struct parked {
	struct parked *next;
	void (*go)(void *arg);
	void *arg;
};

struct governor {
	struct alarm *alarm;
	int64_t bytes; /* that may still be taken */
	uint64_t filled_ms;
	struct parked *first, **last;
};

static void fill(struct governor *governor)
{
	uint64_t now = clock_steady_ms();
	uint64_t passed = now - governor->filled_ms;

	governor->filled_ms = now;
	if (passed > BYTES_MAX / BYTES_PER_MS)
		passed = BYTES_MAX / BYTES_PER_MS;
	governor->bytes += (int64_t)passed * BYTES_PER_MS;
	if (governor->bytes > BYTES_MAX)
		governor->bytes = BYTES_MAX;
}

bool governor_allows(struct governor *governor, uint64_t bytes)
{
	if (governor->bytes <= 0)
		fill(governor);
	if (governor->bytes <= 0)
		return false;
	governor->bytes -= (int64_t)bytes;
	return true;
}

void governor_park(struct governor *governor, void (*go)(void *arg), void *arg)
{
	struct parked *parked = mem_new(sizeof(*parked));

	if (!governor->first)
		alarm_set(governor->alarm, ROUND_MS);
	parked->go = go;
	parked->arg = arg;
	*governor->last = parked;
	governor->last = &parked->next;
}

static struct parked *take_first(struct governor *governor)
{
	struct parked *parked = governor->first;

	governor->first = parked->next;
	if (!governor->first)
		governor->last = &governor->first;
	return parked;
}

static void ring(void *arg)
{
	struct governor *governor = arg;

	fill(governor);
	while (governor->first && governor->bytes > 0) {
		auto_free struct parked *parked = take_first(governor);

		parked->go(parked->arg);
	}
	if (governor->first)
		alarm_set(governor->alarm, ROUND_MS);
}

/* On the reactor's thread, when it cannot ring any more: those who wait are let go. */
static void release(void *arg)
{
	struct governor *governor = arg;

	governor->bytes = BYTES_MAX;
	while (governor->first) {
		auto_free struct parked *parked = take_first(governor);

		parked->go(parked->arg);
	}
	free(governor);
}

int governor_open(struct reactor *reactor, struct governor **ret_governor, struct err *err)
{
	struct governor *governor = mem_new(sizeof(*governor));
	int r;

	governor->last = &governor->first;
	governor->filled_ms = clock_steady_ms();
	governor->bytes = BYTES_MAX;
	r = alarm_open(reactor, ROUND_MS, ring, release, governor, &governor->alarm, err);
	if (r < 0) {
		free(governor);
		return r;
	}
	*ret_governor = governor;
	return 0;
}

void governor_close(struct governor *governor)
{
	if (governor)
		alarm_close(governor->alarm);
}
