/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output/output_rate.h"

#include "base/clock.h"

#include <pthread.h>

#define BYTES_PER_MS (64ll * 1024)	  /* 64 MiB a second, for all together */
#define BYTES_MAX    (32ll * 1024 * 1024) /* saved up in quiet times: a burst is taken at once */
#define ROUND_MS     4

struct waiting_ack {
	struct waiting_ack *next;
	uint64_t (*go)(void *arg);
	void *arg;
};

struct output_rate {
	struct timer *timer;

	pthread_mutex_t lock; /* what follows */
	int64_t bytes;	      /* that may still be taken */
	uint64_t filled_ms;
	struct waiting_ack *first, **last;
};

static void fill(struct output_rate *rate)
{
	uint64_t now = clock_steady_ms();
	uint64_t passed = now - rate->filled_ms;

	rate->filled_ms = now;
	if (passed > BYTES_MAX / BYTES_PER_MS)
		passed = BYTES_MAX / BYTES_PER_MS;
	rate->bytes += (int64_t)passed * BYTES_PER_MS;
	if (rate->bytes > BYTES_MAX)
		rate->bytes = BYTES_MAX;
}

bool output_rate_allows(struct output_rate *rate, uint64_t bytes)
{
	bool may;

	pthread_mutex_lock(&rate->lock);
	if (rate->bytes <= 0)
		fill(rate);
	may = rate->bytes > 0;
	if (may)
		rate->bytes -= (int64_t)bytes;
	pthread_mutex_unlock(&rate->lock);
	return may;
}

void output_rate_park(struct output_rate *rate, uint64_t (*go)(void *arg), void *arg)
{
	struct waiting_ack *waiting = mem_new(sizeof(*waiting));

	waiting->go = go;
	waiting->arg = arg;
	pthread_mutex_lock(&rate->lock);
	if (!rate->first)
		timer_set(rate->timer, ROUND_MS);
	*rate->last = waiting;
	rate->last = &waiting->next;
	pthread_mutex_unlock(&rate->lock);
}

/* The next whose turn it is, after what the one before took; NULL if there is none, or no room. */
static struct waiting_ack *take_next(struct output_rate *rate, uint64_t taken)
{
	struct waiting_ack *waiting = NULL;

	pthread_mutex_lock(&rate->lock);
	rate->bytes -= (int64_t)taken;
	if (rate->bytes > 0 && rate->first) {
		waiting = rate->first;
		rate->first = waiting->next;
		if (!rate->first)
			rate->last = &rate->first;
	} else if (rate->first) {
		timer_set(rate->timer, ROUND_MS);
	}
	pthread_mutex_unlock(&rate->lock);
	return waiting;
}

static void let_go(struct output_rate *rate)
{
	struct waiting_ack *waiting = take_next(rate, 0);

	while (waiting) {
		uint64_t taken = waiting->go(waiting->arg);

		free(waiting);
		waiting = take_next(rate, taken);
	}
}

static void expired(void *arg)
{
	struct output_rate *rate = arg;

	pthread_mutex_lock(&rate->lock);
	fill(rate);
	pthread_mutex_unlock(&rate->lock);
	let_go(rate);
}

/*
 * Called on the event loop's thread when the timer cannot expire any more: runs all
 * acknowledgements that wait.
 */
static void release(void *arg)
{
	struct output_rate *rate = arg;

	rate->bytes = INT64_MAX;
	let_go(rate);
	pthread_mutex_destroy(&rate->lock);
	free(rate);
}

struct output_rate *output_rate_open(struct event_loop *loop)
{
	struct output_rate *rate = mem_new(sizeof(*rate));

	pthread_mutex_init(&rate->lock, NULL);
	rate->last = &rate->first;
	rate->filled_ms = clock_steady_ms();
	rate->bytes = BYTES_MAX;
	rate->timer = timer_open(loop, expired, release, rate);
	return rate;
}

void output_rate_close(struct output_rate *rate)
{
	if (rate)
		timer_close(rate->timer);
}
