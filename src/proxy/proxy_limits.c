/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy_limits.h"

#include "base/clock.h"
#include "base/share_pool.h"
#include "http/rate_limit.h"
#include "proxy/connection/proxy_conn_state.h"
#include "proxy/proxy_private.h"

#include <openssl/sha.h>
#include <string.h>

#define EXCESS_MAX 64

bool proxy_limits_admit(struct proxy *proxy)
{
	if (atomic_fetch_add(&proxy->connections, 1) < proxy->config.max_connections)
		return true;
	proxy_limits_leave(proxy);
	return false;
}

void proxy_limits_leave(struct proxy *proxy)
{
	atomic_fetch_sub(&proxy->connections, 1);
}

bool proxy_limits_count_source(struct proxy *proxy, struct proxy_conn *conn)
{
	conn->is_excess = share_pool_take(proxy->per_address_limit, conn->source, false,
				  &conn->source_share) < 0;
	return !conn->is_excess || atomic_fetch_add(&proxy->excess, 1) < EXCESS_MAX;
}

static void unclaim(struct proxy_conn *conn)
{
	share_give_back(take_ptr(&conn->key_share));
	share_give_back(take_ptr(&conn->owner_share));
}

void proxy_limits_uncount_source(struct proxy *proxy, struct proxy_conn *conn)
{
	if (conn->is_excess)
		atomic_fetch_sub(&proxy->excess, 1);
	share_give_back(take_ptr(&conn->source_share));
	unclaim(conn);
}

unsigned proxy_limits_pace(struct proxy *proxy, const struct proxy_conn *conn)
{
	if (conn->is_local || !proxy->rate_limit)
		return 0;
	return rate_limit_count(proxy->rate_limit, conn->source, clock_steady_ms());
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

int proxy_limits_claim(struct proxy *proxy, struct proxy_conn *conn)
{
	const struct proxy_way *way = &conn->way;
	uint64_t key = digest(way->key);
	int r;

	if (conn->key_share && share_owner(conn->key_share) == key)
		return 0;
	unclaim(conn);
	r = share_pool_take(proxy->keys, key, false, &conn->key_share);
	if (r == 0 && way->owner)
		r = share_pool_take(
			proxy->owners, way->owner, way->is_operators, &conn->owner_share);
	if (r < 0)
		unclaim(conn);
	return r;
}
