/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sources.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#define BUCKETS 1024

struct source {
	struct source *next;
	uint64_t key;
	unsigned count;
};

struct sources {
	pthread_mutex_t lock;
	unsigned max_each;
	struct source *buckets[BUCKETS];
};

struct sources *sources_new(unsigned max_each)
{
	struct sources *sources = mem_new(sizeof(*sources));

	pthread_mutex_init(&sources->lock, NULL);
	sources->max_each = max_each;
	return sources;
}

void sources_free(struct sources *sources)
{
	if (!sources)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (sources->buckets[i]) {
			auto_free struct source *gone = sources->buckets[i];

			sources->buckets[i] = gone->next;
		}
	}
	pthread_mutex_destroy(&sources->lock);
	free(sources);
}

uint64_t sources_key(const struct sockaddr *address)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	uint64_t key = 0;
	uint32_t v4 = 0;

	if (address->sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&key, &v6->sin6_addr, sizeof(key));
		return key ? key : 1; /* ::1 has nothing in its first half */
	}
	if (address->sa_family == AF_INET6)
		memcpy(&v4, (const char *)&v6->sin6_addr + 12, sizeof(v4));
	else if (address->sa_family == AF_INET)
		v4 = ((const struct sockaddr_in *)address)->sin_addr.s_addr;
	return UINT64_C(1) << 32 | v4;
}

/* Where the source is, or would be put; the lock is held. */
static struct source **find(struct sources *sources, uint64_t key)
{
	/* The multiplier spreads neighbours over all buckets. */
	struct source **at =
		&sources->buckets[(key * UINT64_C(0x9e3779b97f4a7c15) >> 54) % BUCKETS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

bool sources_enter(struct sources *sources, uint64_t key)
{
	struct source **at;
	bool is_within;

	pthread_mutex_lock(&sources->lock);
	at = find(sources, key);
	if (!*at) {
		*at = mem_new(sizeof(**at));
		(*at)->key = key;
	}
	is_within = ++(*at)->count <= sources->max_each;
	pthread_mutex_unlock(&sources->lock);
	return is_within;
}

void sources_leave(struct sources *sources, uint64_t key)
{
	struct source **at;

	pthread_mutex_lock(&sources->lock);
	at = find(sources, key);
	assert(*at && (*at)->count > 0);
	if (--(*at)->count == 0) {
		auto_free struct source *gone = *at;

		*at = gone->next;
	}
	pthread_mutex_unlock(&sources->lock);
}
