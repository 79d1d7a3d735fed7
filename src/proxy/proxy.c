/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/rates.h"
#include "http/sources.h"
#include "http/workers.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LOOPS_MAX     16
#define QUEUE_MAX     4096
#define EXCESS_MAX    64
#define BURST_SECONDS 10

/* Something is being woken, and who waits for that. */
struct waking {
	struct waking *next;
	char key[64];
	struct passage *passages;
};

struct proxy {
	struct proxy_config config;
	struct proxy_loop *loops[LOOPS_MAX];
	unsigned loop_count;
	struct workers *workers;
	atomic_uint connections, excess; /* the second: of those that are to be told */
	struct sources *sources, *keys;
	struct rates *rates; /* NULL: no limit */

	pthread_mutex_t lock;
	struct waking *wakings;
};

void proxy_way_fini(struct proxy_way *way)
{
	fd_close(way->fd);
	buf_fini(&way->body);
	buf_fini(&way->fields);
	*way = (struct proxy_way){.fd = -1};
}

bool proxy_admit(struct proxy *proxy)
{
	if (atomic_fetch_add(&proxy->connections, 1) < proxy->config.max_connections)
		return true;
	proxy_leave(proxy);
	return false;
}

void proxy_leave(struct proxy *proxy)
{
	atomic_fetch_sub(&proxy->connections, 1);
}

/* --- limits --- */

bool proxy_welcome(struct proxy *proxy, struct passage *passage)
{
	passage->is_excess = !sources_enter(proxy->sources, passage->source);
	return !passage->is_excess || atomic_fetch_add(&proxy->excess, 1) < EXCESS_MAX;
}

static void unclaim(struct proxy *proxy, struct passage *passage)
{
	if (passage->claim)
		sources_leave(proxy->keys, passage->claim);
	passage->claim = 0;
}

void proxy_bid_farewell(struct proxy *proxy, struct passage *passage)
{
	if (passage->is_excess)
		atomic_fetch_sub(&proxy->excess, 1);
	sources_leave(proxy->sources, passage->source);
	unclaim(proxy, passage);
}

unsigned proxy_pace(struct proxy *proxy, const struct passage *passage)
{
	if (passage->is_local || !proxy->rates)
		return 0;
	return rates_count(proxy->rates, passage->source, clock_steady_ms());
}

/* Whoever visits may have chosen one key, and must not find another that it meets. */
static uint64_t digest(const char *key)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	uint64_t first;

	SHA256((const unsigned char *)key, strlen(key), hash);
	memcpy(&first, hash, sizeof(first));
	return first ? first : 1;
}

bool proxy_claim(struct proxy *proxy, struct passage *passage)
{
	uint64_t claim = digest(passage->way.key);

	if (claim == passage->claim)
		return true;
	unclaim(proxy, passage);
	passage->claim = claim;
	if (sources_enter(proxy->keys, claim))
		return true;
	unclaim(proxy, passage);
	return false;
}

/* --- waking --- */

/* Joins those who wait for a key, with a passage or (NULL) without; true if it is the first, who wakes it. */
static bool join(struct proxy *proxy, const char *key, struct passage *passage)
{
	struct waking *waking;
	bool is_first;

	pthread_mutex_lock(&proxy->lock);
	for (waking = proxy->wakings; waking && strcmp(waking->key, key) != 0;)
		waking = waking->next;
	is_first = !waking;
	if (is_first) {
		waking = mem_new(sizeof(*waking));
		snprintf(waking->key, sizeof(waking->key), "%s", key);
		waking->next = proxy->wakings;
		proxy->wakings = waking;
	}
	if (passage) {
		passage->next_waiting = waking->passages;
		waking->passages = passage;
	}
	pthread_mutex_unlock(&proxy->lock);
	return is_first;
}

static struct passage *take_waiting(struct proxy *proxy, const char *key)
{
	struct passage *passages = NULL;

	pthread_mutex_lock(&proxy->lock);
	for (struct waking **at = &proxy->wakings; *at; at = &(*at)->next) {
		struct waking *waking = *at;

		if (strcmp(waking->key, key) != 0)
			continue;
		passages = waking->passages;
		*at = waking->next;
		free(waking);
		break;
	}
	pthread_mutex_unlock(&proxy->lock);
	return passages;
}

static struct proxy *proxy_of(const struct passage *passage)
{
	return passage->config->proxy;
}

/* Wakes it, and has all who waited look again. */
static void wake(struct proxy *proxy, const char *key)
{
	struct passage *passage;

	proxy->config.wake(proxy->config.context, key);
	passage = take_waiting(proxy, key);
	while (passage) {
		struct passage *next = passage->next_waiting;

		workers_submit_always(proxy->workers, &passage->job);
		passage = next;
	}
}

static void find(struct job *job)
{
	struct passage *passage = (struct passage *)((char *)job - offsetof(struct passage, job));
	struct proxy *proxy = proxy_of(passage);
	char key[sizeof(passage->way.key)];
	bool waits, wakes;

	passage_find(passage);
	memcpy(key, passage->way.key, sizeof(key));
	waits = passage->way.kind == PROXY_WAKE;
	wakes = waits || passage->way.also_wakes;
	if (!waits)
		proxy_loop_found(passage->loop, passage); /* it is not ours any more */
	if (wakes && join(proxy, key, waits ? passage : NULL))
		wake(proxy, key);
}

void proxy_find(struct proxy *proxy, struct passage *passage)
{
	passage->job.run = find;
	workers_submit_always(proxy->workers, &passage->job);
}

/* --- life --- */

int proxy_open(const struct proxy_config *config, struct proxy **ret_proxy, struct err *err)
{
	struct proxy *proxy = mem_new(sizeof(*proxy));
	int r;

	proxy->config = *config;
	proxy->config.proxy = proxy;
	pthread_mutex_init(&proxy->lock, NULL);
	proxy->sources = sources_new(config->max_per_source);
	proxy->keys = sources_new(config->max_per_key);
	if (config->requests_per_second)
		proxy->rates = rates_new(
			BURST_SECONDS * config->requests_per_second, config->requests_per_second);
	r = workers_open(config->max_workers, QUEUE_MAX, &proxy->workers, err);
	for (unsigned i = 0; r == 0 && i < config->threads && i < LOOPS_MAX; i++) {
		r = proxy_loop_open(proxy, &proxy->config, &proxy->loops[i], err);
		proxy->loop_count += r == 0;
	}
	if (r < 0) {
		proxy_close(proxy);
		return r;
	}
	*ret_proxy = proxy;
	return 0;
}

void proxy_close(struct proxy *proxy)
{
	if (!proxy)
		return;
	for (unsigned i = 0; i < proxy->loop_count; i++)
		proxy_loop_stop(proxy->loops[i]);
	if (proxy->workers)
		workers_close(proxy->workers);
	for (unsigned i = 0; i < proxy->loop_count; i++)
		proxy_loop_free(proxy->loops[i]);
	sources_free(proxy->sources);
	sources_free(proxy->keys);
	rates_free(proxy->rates);
	pthread_mutex_destroy(&proxy->lock);
	free(proxy);
}
