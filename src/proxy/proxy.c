/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

#include "base/share_pool.h"
#include "http/rate_limit.h"
#include "http/workers.h"
#include "proxy/proxy_clients.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"
#include "proxy/wake_queue.h"

#define QUEUE_MAX     4096
#define BURST_SECONDS 10

static struct share_pool *pool_of(unsigned limit, unsigned each)
{
	return share_pool_new(&(struct share_limits){.limit = limit, .per_owner = each});
}

static void open_pools(struct proxy *proxy)
{
	const struct proxy_config *config = &proxy->config;
	unsigned all = config->max_connections;
	struct share_limits owners = share_limits_of(all - all / 4);

	owners.per_owner = all / 4 > 0 ? all / 4 : 1;
	owners.spares_operator = true; /* who is alone on most machines; max_per_key still holds */
	proxy->owners = share_pool_new(&owners);
	proxy->per_address_limit = pool_of(all, config->max_per_source);
	proxy->keys = pool_of(all, config->max_per_key);
}

int proxy_open(const struct proxy_config *config, struct proxy **ret_proxy, struct err *err)
{
	struct proxy *proxy = mem_new(sizeof(*proxy));
	int r;

	proxy->config = *config;
	proxy->config.proxy = proxy;
	open_pools(proxy);
	if (config->requests_per_second)
		proxy->rate_limit = rate_limit_new(
			BURST_SECONDS * config->requests_per_second, config->requests_per_second);
	r = workers_open(config->max_workers, QUEUE_MAX, &proxy->workers, err);
	if (r == 0)
		proxy->wake_queue = wake_queue_new(&proxy->config, proxy->workers);
	for (unsigned i = 0; r == 0 && i < config->threads && i < PROXY_LOOPS_MAX; i++) {
		r = proxy_loop_open(
			proxy, proxy_clients_accept, proxy_clients_tick, &proxy->loops[i], err);
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
	if (proxy->wake_queue)
		wake_queue_stop(proxy->wake_queue);
	if (proxy->workers)
		workers_close(proxy->workers);
	wake_queue_free(proxy->wake_queue);
	for (unsigned i = 0; i < proxy->loop_count; i++)
		proxy_loop_free(proxy->loops[i]);
	share_pool_free(proxy->per_address_limit);
	share_pool_free(proxy->keys);
	share_pool_free(proxy->owners);
	rate_limit_free(proxy->rate_limit);
	free(proxy);
}
