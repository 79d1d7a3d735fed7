/* SPDX-License-Identifier: Apache-2.0 */
#include "core/network.h"

#include "base/clock.h"
#include "core/sandbox_state.h"

#include <stdio.h>
#include <string.h>

bool network_leads_out(const json_t *network)
{
	const char *mode = json_string_value(json_object_get(network, "mode"));

	return (mode && strcmp(mode, "none") != 0) ||
	       json_array_size(json_object_get(network, "secrets")) > 0;
}

static uint64_t number_in(const json_t *network, const char *name, uint64_t default_value)
{
	const json_t *value = json_object_get(network, name);

	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : default_value;
}

struct sluice_limits network_limits(const struct engine *engine)
{
	return engine->config.network_limits;
}

/* A row may ask for more, from a time when the operator allowed more. */
static struct sluice_limits limits_of(const struct engine *engine, const json_t *network)
{
	struct sluice_limits most = network_limits(engine);
	uint64_t connections = number_in(network, "connections", most.connections);
	uint64_t bandwidth = number_in(network, "bandwidth", most.bandwidth);

	return (struct sluice_limits){.connections = connections < most.connections
							     ? (unsigned)connections
							     : most.connections,
		.bandwidth = most.bandwidth == 0 || bandwidth < most.bandwidth ? bandwidth
									       : most.bandwidth};
}

struct sluice *network_sluice(struct sandbox *sandbox)
{
	struct sluice *sluice;

	pthread_mutex_lock(&sandbox->state);
	sluice = sandbox->sluice ? sluice_ref(sandbox->sluice) : NULL;
	pthread_mutex_unlock(&sandbox->state);
	return sluice;
}

bool network_is_transparent(struct sandbox *sandbox)
{
	bool is_transparent;

	pthread_mutex_lock(&sandbox->state);
	is_transparent = sandbox->sluice && sandbox->is_transparent;
	pthread_mutex_unlock(&sandbox->state);
	return is_transparent;
}

int network_open(struct sandbox *sandbox, struct err *err)
{
	struct engine *engine = sandbox->engine;
	struct driver *driver = engine->config.driver;
	const json_t *network = sandbox->record.network; /* which only a holder of life changes */
	struct sluice_limits limits = limits_of(engine, network);
	struct driver_exits exits;
	struct sluice *sluice;
	int r;

	if (!network_leads_out(network) || !driver->ops->open_exits)
		return 0;
	r = driver->ops->open_exits(driver, sandbox->id, &exits, err);
	if (r < 0)
		return r;
	r = sluice_open(engine->egress, &(struct sluice_party){sandbox->id, &sandbox->record.owner},
		&(struct sluice_sockets){exits.proxy_fd, exits.dns_fd, exits.dns_stream_fd},
		network, &limits, &sluice, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	sandbox->sluice = sluice;
	sandbox->is_transparent = exits.is_transparent;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

/* Whether it runs and should have a way out, but has none. */
static bool is_missing(struct sandbox *sandbox)
{
	bool is;

	pthread_mutex_lock(&sandbox->state);
	is = !sandbox->sluice && sandbox->link && !sandbox->ending &&
	     network_leads_out(sandbox->record.network);
	pthread_mutex_unlock(&sandbox->state);
	return is;
}

int network_open_missing(struct sandbox *sandbox, struct err *err)
{
	return is_missing(sandbox) ? network_open(sandbox, err) : 0;
}

int network_need(struct sandbox *sandbox, struct err *err)
{
	int r;

	if (!is_missing(sandbox))
		return 0;
	pthread_mutex_lock(&sandbox->life);
	/* Somebody else may have opened it, or ended the sandbox, which the process will then notice. */
	r = network_open_missing(sandbox, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}

void network_close(struct sandbox *sandbox)
{
	struct sluice *sluice;

	pthread_mutex_lock(&sandbox->state);
	sluice = take_ptr(&sandbox->sluice);
	pthread_mutex_unlock(&sandbox->state);
	if (sluice)
		sluice_close(sluice);
	sluice_unref(sluice);
}

int network_change(struct sandbox *sandbox, struct err *err)
{
	const json_t *network = sandbox->record.network;
	struct sluice_limits limits = limits_of(sandbox->engine, network);
	struct sluice *sluice = network_sluice(sandbox);

	if (!sluice)
		return network_open_missing(sandbox, err);
	sluice_change(sluice, network, &limits);
	sluice_unref(sluice);
	return 0;
}

void network_reload_trust(struct engine *engine)
{
	egress_reload_trust(engine->egress);
}

/* Names and addresses were checked before they came here: none has a character to be escaped. */
void network_announce_denial(void *arg, const char *sandbox_id, const struct egress_denial *denial)
{
	char json[1024], at[CLOCK_TEXT_LEN];

	clock_format(denial->at_ms, at);
	snprintf(json, sizeof(json),
		"{\"sandbox\":\"%s\",\"target\":\"%s\",\"reason\":\"%s\",\"rule\":%s%s%s,\"at\":\"%"
		"s\"}",
		sandbox_id, denial->target, egress_denial_reason_name(denial->reason),
		denial->rule[0] ? "\"" : "", denial->rule[0] ? denial->rule : "null",
		denial->rule[0] ? "\"" : "", at);
	engine_publish(arg, sandbox_id, "network.denied", json);
}
