/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output/output_rate.h"

#include "base/clock.h"

#include <pthread.h>

#define BYTES_PER_MS (64ll * 1024)	  /* 64 MiB a second, for all together */
#define BYTES_MAX    (32ll * 1024 * 1024) /* saved up in quiet times: a burst is taken at once */
#define ROUND_MS     4
#define WAIT_MAX_MS  1000
/* Up to so many may wait at the whole rate; more share less of it, at least a part of 1 / PART_MAX. */
#define FEW	 4
#define PART_MAX 16

struct waiting_ack {
	struct waiting_ack *next;
	uint64_t (*go)(void *arg);
	void *arg;
};

/* Those of one sandbox that wait. */
struct turn {
	struct turn *next;
	const void *of;
	struct waiting_ack *first, **last;
};

struct output_rate {
	struct timer *timer;

	pthread_mutex_t lock; /* what follows */
	int64_t bytes;	      /* that may still be taken */
	uint64_t filled_ms;
	struct turn *first, **last; /* the next turn is the first's */
	unsigned int waiting;
};

static int64_t bytes_per_ms(const struct output_rate *rate)
{
	unsigned int part = rate->waiting / FEW;

	if (part < 1)
		part = 1;
	if (part > PART_MAX)
		part = PART_MAX;
	return BYTES_PER_MS / part;
}

static void fill(struct output_rate *rate)
{
	uint64_t now = clock_steady_ms();
	uint64_t passed = now - rate->filled_ms;

	rate->filled_ms = now;
	if (passed > BYTES_MAX / BYTES_PER_MS)
		passed = BYTES_MAX / BYTES_PER_MS;
	rate->bytes += (int64_t)passed * bytes_per_ms(rate);
	if (rate->bytes > BYTES_MAX)
		rate->bytes = BYTES_MAX;
}

/* Has the timer expire when there is room again. The lock is held. */
static void set_timer(struct output_rate *rate)
{
	int64_t wait_ms = rate->bytes < 0 ? -rate->bytes / bytes_per_ms(rate) : 0;

	if (wait_ms < ROUND_MS)
		wait_ms = ROUND_MS;
	if (wait_ms > WAIT_MAX_MS)
		wait_ms = WAIT_MAX_MS;
	timer_set(rate->timer, (uint64_t)wait_ms);
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

static void append_turn(struct output_rate *rate, struct turn *turn)
{
	turn->next = NULL;
	*rate->last = turn;
	rate->last = &turn->next;
}

/* The turn of a sandbox, a new one if none of its processes waits. The lock is held. */
static struct turn *turn_of(struct output_rate *rate, const void *of)
{
	struct turn *turn = rate->first;

	while (turn && turn->of != of)
		turn = turn->next;
	if (turn)
		return turn;
	turn = mem_new(sizeof(*turn));
	turn->of = of;
	turn->last = &turn->first;
	append_turn(rate, turn);
	return turn;
}

void output_rate_park(
	struct output_rate *rate, const void *of, uint64_t (*go)(void *arg), void *arg)
{
	struct waiting_ack *waiting = mem_new(sizeof(*waiting));
	struct turn *turn;

	waiting->go = go;
	waiting->arg = arg;
	pthread_mutex_lock(&rate->lock);
	if (!rate->first)
		set_timer(rate);
	turn = turn_of(rate, of);
	*turn->last = waiting;
	turn->last = &waiting->next;
	rate->waiting++;
	pthread_mutex_unlock(&rate->lock);
}

/* Takes the first one of the first turn, which becomes the last turn or ends. The lock is held. */
static struct waiting_ack *take_first(struct output_rate *rate)
{
	struct turn *turn = rate->first;
	struct waiting_ack *waiting = turn->first;

	rate->first = turn->next;
	if (!rate->first)
		rate->last = &rate->first;
	turn->first = waiting->next;
	rate->waiting--;
	if (turn->first)
		append_turn(rate, turn);
	else
		free(turn);
	return waiting;
}

/* The next whose turn it is, after what the one before took; NULL if there is none, or no room. */
static struct waiting_ack *take_next(struct output_rate *rate, uint64_t taken)
{
	struct waiting_ack *waiting = NULL;

	pthread_mutex_lock(&rate->lock);
	rate->bytes -= (int64_t)taken;
	if (rate->bytes > 0 && rate->first)
		waiting = take_first(rate);
	else if (rate->first)
		set_timer(rate);
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
