/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define BUCKETS 256

struct share {
	struct share *next; /* in its bucket */
	struct share_pool *pool;
	uint64_t owner;
	atomic_uint used; /* changed under the pool's lock only */
};

struct share_pool {
	struct share_limits limits;
	pthread_mutex_t lock;
	unsigned used;
	struct share *buckets[BUCKETS];
};

struct share_limits share_limits_of(unsigned limit)
{
	unsigned reserve = limit / 16;

	return (struct share_limits){.limit = limit,
		.per_owner = limit / 4 > 0 ? limit / 4 : 1,
		.reserve = reserve == 0 && limit >= 4 ? 1 : reserve};
}

struct share_pool *share_pool_new(const struct share_limits *limits)
{
	struct share_pool *pool = mem_new(sizeof(*pool));

	assert(limits->reserve <= limits->limit);
	pool->limits = *limits;
	pthread_mutex_init(&pool->lock, NULL);
	return pool;
}

void share_pool_free(struct share_pool *pool)
{
	if (!pool)
		return;
	assert(pool->used == 0);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Finds the owner's share, or the place for it. The caller has the lock. */
static struct share **find(struct share_pool *pool, uint64_t owner)
{
	/* The multiplier spreads neighbours over all buckets. */
	struct share **at = &pool->buckets[(owner * UINT64_C(0x9e3779b97f4a7c15) >> 56) % BUCKETS];

	while (*at && (*at)->owner != owner)
		at = &(*at)->next;
	return at;
}

static struct share *add(struct share_pool *pool, struct share **at, uint64_t owner)
{
	struct share *share = mem_new(sizeof(*share));

	share->pool = pool;
	share->owner = owner;
	*at = share;
	return share;
}

int share_pool_take(
	struct share_pool *pool, uint64_t owner, bool is_operator, struct share **ret_share)
{
	const struct share_limits *limits = &pool->limits;
	struct share **at;
	int r = 0;

	pthread_mutex_lock(&pool->lock);
	at = find(pool, owner);
	if (*at && (*at)->used >= limits->per_owner && !(is_operator && limits->spares_operator))
		r = -EDQUOT;
	else if (pool->used >= limits->limit - (is_operator ? 0 : limits->reserve))
		r = -EAGAIN;
	if (r == 0) {
		struct share *share = *at ? *at : add(pool, at, owner);

		share->used++;
		pool->used++;
		*ret_share = share;
	}
	pthread_mutex_unlock(&pool->lock);
	return r;
}

void share_give_back(struct share *share)
{
	struct share_pool *pool;

	if (!share)
		return;
	pool = share->pool;
	pthread_mutex_lock(&pool->lock);
	assert(share->used > 0 && pool->used > 0);
	pool->used--;
	if (--share->used == 0) {
		*find(pool, share->owner) = share->next;
		free(share);
	}
	pthread_mutex_unlock(&pool->lock);
}

uint64_t share_owner(const struct share *share)
{
	return share->owner;
}

unsigned share_used(const struct share *share)
{
	return atomic_load(&share->used);
}

unsigned share_pool_used(struct share_pool *pool)
{
	unsigned used;

	pthread_mutex_lock(&pool->lock);
	used = pool->used;
	pthread_mutex_unlock(&pool->lock);
	return used;
}
