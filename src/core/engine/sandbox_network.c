/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/sandbox_network.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"

#include <stdio.h>
#include <string.h>

static uint64_t number_in(const json_t *network, const char *name, uint64_t default_value)
{
	const json_t *value = json_object_get(network, name);

	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : default_value;
}

struct sandbox_egress_limits sandbox_network_limits(const struct engine *engine)
{
	return engine->config.sandbox_network_limits;
}

/* A row may ask for more, from a time when the operator allowed more. */
static struct sandbox_egress_limits limits_of(const struct engine *engine, const json_t *network)
{
	struct sandbox_egress_limits most = sandbox_network_limits(engine);
	uint64_t connections = number_in(network, "connections", most.connections);
	uint64_t bandwidth = number_in(network, "bandwidth", most.bandwidth);

	return (struct sandbox_egress_limits){.connections = connections < most.connections
								     ? (unsigned)connections
								     : most.connections,
		.bandwidth = most.bandwidth == 0 || bandwidth < most.bandwidth ? bandwidth
									       : most.bandwidth};
}

/* A reference to the egress; NULL if the sandbox does not run or has none. */
static struct sandbox_egress *ref_egress(struct sandbox *sandbox, bool *ret_is_transparent)
{
	struct sandbox_egress *egress;

	pthread_mutex_lock(&sandbox->state);
	egress = sandbox->egress ? sandbox_egress_ref(sandbox->egress) : NULL;
	*ret_is_transparent = egress && sandbox->is_transparent;
	pthread_mutex_unlock(&sandbox->state);
	return egress;
}

static void add_reached(const char *rule, void *arg)
{
	struct sandbox_network_report *report = arg;

	for (size_t i = 0; i < report->reached_count; i++) {
		if (strcmp(report->reached[i], rule) == 0)
			return;
	}
	if (report->reached_count < SANDBOX_EGRESS_CONTACTS_MAX)
		snprintf(report->reached[report->reached_count++], sizeof(*report->reached), "%s",
			rule);
}

void sandbox_network_read(struct sandbox *sandbox, struct sandbox_network_report *ret_report)
{
	struct sandbox_network_report report = {0};
	struct sandbox_egress *egress = ref_egress(sandbox, &report.is_transparent);
	struct err err;

	report.reached = mem_new(SANDBOX_EGRESS_CONTACTS_MAX * sizeof(*report.reached));
	if (egress) {
		report.denials = mem_new(SANDBOX_EGRESS_DENIALS_MAX * sizeof(*report.denials));
		sandbox_egress_count(egress, &report.counters);
		report.reached_count = sandbox_egress_contacts(egress, report.reached);
		report.denial_count = sandbox_egress_denials(egress, report.denials);
	}
	sandbox_egress_unref(egress);
	if (store_reached_list(
		    sandbox->engine->config.store, sandbox->id, add_reached, &report, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	*ret_report = report;
}

/* Writes those behind the first `saved`; how many are written now. */
static size_t save_contacts(struct sandbox *sandbox, struct sandbox_egress *egress, size_t saved)
{
	auto_free char(*rules)[EGRESS_NAME_MAX + 8] =
		mem_new(SANDBOX_EGRESS_CONTACTS_MAX * sizeof(*rules));
	size_t count = sandbox_egress_contacts(egress, rules);
	struct store *store = sandbox->engine->config.store;
	struct err err;

	while (saved < count && store_reached_add(store, sandbox->id, rules[saved], &err) == 0)
		saved++;
	if (saved < count)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	return saved;
}

void sandbox_network_save(struct sandbox *sandbox)
{
	struct sandbox_egress_counters counters;
	bool ignored;
	struct sandbox_egress *egress = ref_egress(sandbox, &ignored);
	uint64_t before;
	size_t saved;

	if (!egress)
		return;
	sandbox_egress_count(egress, &counters);
	pthread_mutex_lock(&sandbox->state);
	before = sandbox->saved_connections;
	saved = sandbox->saved_contacts;
	pthread_mutex_unlock(&sandbox->state);
	if (counters.connections != before) {
		saved = save_contacts(sandbox, egress, saved);
		pthread_mutex_lock(&sandbox->state);
		sandbox->saved_connections = counters.connections;
		sandbox->saved_contacts = saved;
		pthread_mutex_unlock(&sandbox->state);
	}
	sandbox_egress_unref(egress);
}

void sandbox_network_report_fini(struct sandbox_network_report *report)
{
	free(take_ptr(&report->reached));
	free(take_ptr(&report->denials));
}

void sandbox_network_count(struct sandbox *sandbox, struct sandbox_egress_counters *ret_counters)
{
	bool ignored;
	struct sandbox_egress *egress = ref_egress(sandbox, &ignored);

	*ret_counters = (struct sandbox_egress_counters){0};
	if (egress)
		sandbox_egress_count(egress, ret_counters);
	sandbox_egress_unref(egress);
}

int sandbox_network_open(struct sandbox *sandbox, struct err *err)
{
	struct engine *engine = sandbox->engine;
	struct driver *driver = engine->config.driver;
	const json_t *network = sandbox->record.network; /* which only a holder of life changes */
	struct sandbox_egress_limits limits = limits_of(engine, network);
	struct driver_egress_sockets sockets;
	struct sandbox_egress *egress;
	int r;

	/* A member has that of its sandbox. */
	if (!network_leads_out(network) || sandbox->record.parent[0])
		return 0;
	r = capability_need(driver, DRIVER_EGRESS_POLICY, err);
	if (r == 0)
		r = driver->ops->open_egress_sockets(driver, sandbox->id, &sockets, err);
	if (r < 0)
		return r;
	r = sandbox_egress_open(engine->egress,
		&(struct sandbox_egress_identity){
			sandbox->id, &sandbox->record.owner, sandbox->record.name},
		&(struct sandbox_egress_sockets){
			sockets.proxy_fd, sockets.dns_fd, sockets.dns_stream_fd},
		network, &limits, &egress, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	sandbox->egress = egress;
	sandbox->saved_contacts = 0;
	sandbox->saved_connections = 0;
	sandbox->is_transparent = sockets.is_transparent;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

/* Whether the sandbox runs and should have egress, but has none. */
static bool is_missing(struct sandbox *sandbox)
{
	bool is;

	pthread_mutex_lock(&sandbox->state);
	is = !sandbox->egress && sandbox->link && !sandbox->ending && !sandbox->record.parent[0] &&
	     network_leads_out(sandbox->record.network);
	pthread_mutex_unlock(&sandbox->state);
	return is;
}

int sandbox_network_open_missing(struct sandbox *sandbox, struct err *err)
{
	return is_missing(sandbox) ? sandbox_network_open(sandbox, err) : 0;
}

int sandbox_network_need(struct sandbox *sandbox, struct err *err)
{
	int r;

	if (!is_missing(sandbox))
		return 0;
	pthread_mutex_lock(&sandbox->life);
	/*
	 * Another thread may have opened it, or ended the sandbox; the caller notices the latter.
	 */
	r = sandbox_network_open_missing(sandbox, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}

void sandbox_network_close(struct sandbox *sandbox)
{
	struct sandbox_egress *egress;

	sandbox_network_save(sandbox);
	pthread_mutex_lock(&sandbox->state);
	egress = take_ptr(&sandbox->egress);
	pthread_mutex_unlock(&sandbox->state);
	if (egress)
		sandbox_egress_close(egress);
	sandbox_egress_unref(egress);
}

static void change(struct sandbox *sandbox, struct sandbox_egress *egress)
{
	const json_t *network = sandbox->record.network;
	struct sandbox_egress_limits limits = limits_of(sandbox->engine, network);

	sandbox_egress_change(egress, network, &limits);
}

int sandbox_network_change(struct sandbox *sandbox, struct err *err)
{
	bool ignored;
	struct sandbox_egress *egress = ref_egress(sandbox, &ignored);

	if (!egress)
		return sandbox_network_open_missing(sandbox, err);
	change(sandbox, egress);
	sandbox_egress_unref(egress);
	return 0;
}

/* One without egress has run nothing that could use it: the first process opens it, as after a create. */
void sandbox_network_give(struct sandbox *sandbox, bool is_other)
{
	bool ignored;
	struct sandbox_egress *egress = ref_egress(sandbox, &ignored);

	if (!egress)
		return;
	sandbox_egress_give(egress, &(struct sandbox_egress_identity){sandbox->id,
					    &sandbox->record.owner, sandbox->record.name});
	if (is_other)
		change(sandbox, egress);
	sandbox_egress_unref(egress);
}

void sandbox_network_reload_trust(struct engine *engine)
{
	egress_reload_trust(engine->egress);
}

/* Names and addresses were checked before they came here: none has a character to be escaped. */
void sandbox_network_announce_denial(
	void *arg, const char *sandbox_id, const struct egress_denial *denial)
{
	struct sandbox *sandbox = sandbox_handle_find(arg, sandbox_id);
	struct engine *engine = arg;
	char json[1024], at[CLOCK_TEXT_LEN];

	atomic_fetch_add(&engine->denials, 1);
	if (!sandbox)
		return;
	clock_format(denial->at_ms, at);
	snprintf(json, sizeof(json),
		"{\"sandbox\":\"%s\",\"target\":\"%s\",\"reason\":\"%s\",\"rule\":%s%s%s,\"at\":\"%"
		"s\"}",
		sandbox_id, denial->target, egress_denial_reason_name(denial->reason),
		denial->rule[0] ? "\"" : "", denial->rule[0] ? denial->rule : "null",
		denial->rule[0] ? "\"" : "", at);
	sandbox_tell(sandbox, "network.denied", json);
	sandbox_unref(sandbox);
}
