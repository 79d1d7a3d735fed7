/* SPDX-License-Identifier: Apache-2.0 */
#include "core/governor.h"

#include "base/clock.h"

#include <pthread.h>

#define BYTES_PER_MS (64ll * 1024)	  /* 64 MiB a second, for all together */
#define BYTES_MAX    (32ll * 1024 * 1024) /* saved up in quiet times: a burst is taken at once */
#define ROUND_MS     4

struct parked {
	struct parked *next;
	uint64_t (*go)(void *arg);
	void *arg;
};

struct governor {
	struct alarm *alarm;

	pthread_mutex_t lock; /* what follows */
	int64_t bytes;	      /* that may still be taken */
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
	bool may;

	pthread_mutex_lock(&governor->lock);
	if (governor->bytes <= 0)
		fill(governor);
	may = governor->bytes > 0;
	if (may)
		governor->bytes -= (int64_t)bytes;
	pthread_mutex_unlock(&governor->lock);
	return may;
}

void governor_park(struct governor *governor, uint64_t (*go)(void *arg), void *arg)
{
	struct parked *parked = mem_new(sizeof(*parked));

	parked->go = go;
	parked->arg = arg;
	pthread_mutex_lock(&governor->lock);
	if (!governor->first)
		alarm_set(governor->alarm, ROUND_MS);
	*governor->last = parked;
	governor->last = &parked->next;
	pthread_mutex_unlock(&governor->lock);
}

/* The next whose turn it is, after what the one before took; NULL if there is none, or no room. */
static struct parked *take_next(struct governor *governor, uint64_t taken)
{
	struct parked *parked = NULL;

	pthread_mutex_lock(&governor->lock);
	governor->bytes -= (int64_t)taken;
	if (governor->bytes > 0 && governor->first) {
		parked = governor->first;
		governor->first = parked->next;
		if (!governor->first)
			governor->last = &governor->first;
	} else if (governor->first) {
		alarm_set(governor->alarm, ROUND_MS);
	}
	pthread_mutex_unlock(&governor->lock);
	return parked;
}

static void let_go(struct governor *governor)
{
	struct parked *parked = take_next(governor, 0);

	while (parked) {
		uint64_t taken = parked->go(parked->arg);

		free(parked);
		parked = take_next(governor, taken);
	}
}

static void ring(void *arg)
{
	struct governor *governor = arg;

	pthread_mutex_lock(&governor->lock);
	fill(governor);
	pthread_mutex_unlock(&governor->lock);
	let_go(governor);
}

/* On the reactor's thread, when it cannot ring any more: all who wait are let go. */
static void release(void *arg)
{
	struct governor *governor = arg;

	governor->bytes = INT64_MAX;
	let_go(governor);
	pthread_mutex_destroy(&governor->lock);
	free(governor);
}

int governor_open(struct reactor *reactor, struct governor **ret_governor, struct err *err)
{
	struct governor *governor = mem_new(sizeof(*governor));
	int r;

	pthread_mutex_init(&governor->lock, NULL);
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
