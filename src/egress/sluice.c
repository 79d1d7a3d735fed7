/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of one sandbox: its policy, its limits, and what it tried. */
#include "base/clock.h"
#include "base/fd.h"
#include "egress/egress_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ACCEPTS_AT_A_TIME 32
#define BURST_MS	  200 /* of its bandwidth, that may come at once */
#define TOLD_MAX	  10  /* refusals in a second that others are told of; all are counted */

static const char *const reason_names[EGRESS_DENIAL_REASON_COUNT] = {
	[EGRESS_NOT_ALLOWED] = "not_allowed",
	[EGRESS_PRIVATE_ADDRESS] = "private_address",
	[EGRESS_OTHER_NAME] = "other_name",
	[EGRESS_FORGOTTEN_NAME] = "forgotten_name",
	[EGRESS_TOO_MANY] = "too_many_connections",
};

const char *egress_denial_reason_name(enum egress_denial_reason reason)
{
	return reason_names[reason];
}

/* --- judging and noting --- */

bool sluice_judge(const struct sluice *sluice, const struct authority *target,
	enum egress_denial_reason *ret_reason)
{
	*ret_reason = EGRESS_NOT_ALLOWED;
	if (target->name[0])
		return policy_allows_name(sluice->policy, target->name, target->port);
	return policy_allows_address(sluice->policy, target->address, target->port);
}

/* Whether it is the name inside of a secret: <name>.internal. */
static bool is_alias(const char *name, const char *secret_name)
{
	size_t len = strlen(secret_name);

	return strncmp(name, secret_name, len) == 0 && strcmp(name + len, "." SECRET_DOMAIN) == 0;
}

static bool is_server_itself(const struct vault_secret *secret, const struct authority *target)
{
	const struct secret_server *server = &secret->server;

	return !server->is_tls && authority_equals(&server->at, target);
}

static const struct vault_secret *nth_secret(const struct sluice *sluice, size_t i)
{
	struct vault *vault = sluice->station->egress->config.vault;
	const char *name = policy_secret(sluice->policy, i);

	return vault && name ? vault_find(vault, &sluice->owner, name) : NULL;
}

const struct vault_secret *sluice_find_secret(
	const struct sluice *sluice, const struct authority *target)
{
	for (size_t i = 0; policy_secret(sluice->policy, i); i++) {
		const struct vault_secret *secret = nth_secret(sluice, i);

		if (secret && ((target->port == SECRET_PORT &&
				       is_alias(target->name, secret->record.name)) ||
				      is_server_itself(secret, target)))
			return secret;
		vault_secret_unref(secret);
	}
	return NULL;
}

bool sluice_serves_name(const struct sluice *sluice, const char *name)
{
	bool serves = false;

	for (size_t i = 0; policy_secret(sluice->policy, i) && !serves; i++) {
		const struct vault_secret *secret = nth_secret(sluice, i);

		serves = secret && (is_alias(name, secret->record.name) ||
					   (!secret->server.is_tls &&
						   strcmp(secret->server.at.name, name) == 0));
		vault_secret_unref(secret);
	}
	return serves;
}

/* The entry for it: one that is there, a free one, or that of the oldest. */
static struct egress_denial *place_for_denial(
	struct sluice *sluice, const char *what, enum egress_denial_reason reason)
{
	struct egress_denial *oldest;

	if (!sluice->denials)
		sluice->denials = mem_new(SLUICE_DENIALS_MAX * sizeof(*sluice->denials));
	oldest = &sluice->denials[0];
	for (size_t i = 0; i < SLUICE_DENIALS_MAX; i++) {
		struct egress_denial *denial = &sluice->denials[i];

		if (denial->count == 0 ||
			(denial->reason == reason && strcmp(denial->target, what) == 0))
			return denial;
		if (denial->at_ms < oldest->at_ms)
			oldest = denial;
	}
	oldest->count = 0;
	return oldest;
}

static bool may_tell(struct sluice *sluice)
{
	uint64_t now = clock_steady_ms();

	if (now - sluice->told_since_ms >= 1000) {
		sluice->told_since_ms = now;
		sluice->told_count = 0;
	}
	return sluice->told_count++ < TOLD_MAX;
}

void sluice_deny(
	struct sluice *sluice, const char *what, const char *rule, enum egress_denial_reason reason)
{
	const struct egress_config *config = &sluice->station->egress->config;
	struct egress_denial *denial = place_for_denial(sluice, what, reason);
	bool is_new = denial->count == 0;

	sluice->counters.denied++;
	snprintf(denial->target, sizeof(denial->target), "%s", what);
	snprintf(denial->rule, sizeof(denial->rule), "%s", rule);
	denial->reason = reason;
	denial->at_ms = clock_wall_ms();
	denial->count++;
	if (is_new && config->denied && may_tell(sluice))
		config->denied(config->arg, sluice->sandbox_id, denial);
}

void sluice_note_contact(struct sluice *sluice, const struct authority *target)
{
	char rule[EGRESS_NAME_MAX + 8];

	authority_format(target, 0, rule);
	for (size_t i = 0; i < sluice->contact_count; i++) {
		if (strcmp(sluice->contacts[i].rule, rule) == 0)
			return;
	}
	if (sluice->contact_count == SLUICE_CONTACTS_MAX)
		return;
	if (!sluice->contacts)
		sluice->contacts = mem_new(SLUICE_CONTACTS_MAX * sizeof(*sluice->contacts));
	memcpy(sluice->contacts[sluice->contact_count++].rule, rule, sizeof(rule));
}

/* --- bandwidth: a bucket that fills with time and may be overdrawn by one turn --- */

static void refill(struct sluice *sluice)
{
	uint64_t now = clock_steady_ms(), elapsed = now - sluice->refilled_ms;
	int64_t most = (int64_t)(sluice->limits.bandwidth * BURST_MS / 1000);

	if (elapsed > BURST_MS)
		elapsed = BURST_MS;
	sluice->refilled_ms = now;
	sluice->allowance += (int64_t)(sluice->limits.bandwidth * elapsed / 1000);
	if (sluice->allowance > most)
		sluice->allowance = most;
}

size_t sluice_budget(struct sluice *sluice, size_t wanted)
{
	if (sluice->limits.bandwidth == 0)
		return wanted;
	/* Not at each look: what is less than a byte a millisecond would be lost in rounding. */
	if (clock_steady_ms() - sluice->refilled_ms >= DISPATCHER_TICK_MS)
		refill(sluice);
	if (sluice->allowance <= 0)
		return 0;
	return (uint64_t)sluice->allowance < wanted ? (size_t)sluice->allowance : wanted;
}

void sluice_spend(struct sluice *sluice, size_t bytes)
{
	if (sluice->limits.bandwidth > 0)
		sluice->allowance -= (int64_t)bytes;
}

/* --- life --- */

static void set_stalled(struct sluice *sluice, bool is_stalled)
{
	if (sluice->is_stalled != is_stalled)
		dispatcher_wait_for_time(sluice->station->dispatcher, is_stalled);
	sluice->is_stalled = is_stalled;
}

static void accept_all(void *arg)
{
	struct sluice *sluice = arg;

	for (int i = 0; i < ACCEPTS_AT_A_TIME; i++) {
		int fd = accept4(sluice->proxy.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			set_stalled(sluice, errno == EMFILE || errno == ENFILE);
			return;
		}
		flow_accept(sluice, fd);
	}
	dispatcher_requeue(sluice->station->dispatcher, &sluice->proxy);
}

void sluice_tick(struct sluice *sluice, uint64_t now_ms)
{
	flow_tick_all(sluice, now_ms);
	if (sluice->is_stalled)
		accept_all(sluice);
}

static int add_source(struct sluice *sluice, struct source *source, int fd,
	void (*ready)(void *owner), struct err *err)
{
	int r;

	*source = (struct source){.fd = fd, .ready = ready, .owner = sluice};
	r = dispatcher_add(sluice->station->dispatcher, source);
	return r < 0 ? err_from(err, r, "serve the network of sandbox %s", sluice->sandbox_id) : 0;
}

static int open_sources(
	struct sluice *sluice, const struct sluice_sockets *sockets, struct err *err)
{
	int dns = add_source(sluice, &sluice->dns, sockets->dns_fd, dns_service_read, err);
	int stream = add_source(
		sluice, &sluice->dns_stream, sockets->dns_stream_fd, dns_service_accept, err);
	int proxy = add_source(sluice, &sluice->proxy, sockets->proxy_fd, accept_all, err);

	return dns < 0 ? dns : stream < 0 ? stream : proxy;
}

int sluice_open(struct egress *egress, const struct sluice_party *party,
	const struct sluice_sockets *sockets, const json_t *network,
	const struct sluice_limits *limits, struct sluice **ret_sluice, struct err *err)
{
	unsigned turn = atomic_fetch_add(&egress->next_station, 1);
	struct station *station = &egress->stations[turn % egress->station_count];
	struct sluice *sluice = mem_new(sizeof(*sluice));
	int r;

	sluice->refs = 1;
	sluice->station = station;
	snprintf(sluice->sandbox_id, sizeof(sluice->sandbox_id), "%s", party->sandbox_id);
	sluice->owner = *party->owner;
	sluice->policy = policy_new(network);
	sluice->limits = *limits;
	sluice->has_v6 = fd_family(sockets->proxy_fd) == AF_INET6; /* then it is for both */
	sluice->refilled_ms = clock_steady_ms();
	dispatcher_lock(station->dispatcher);
	sluice->next = station->sluices;
	station->sluices = sluice;
	r = open_sources(sluice, sockets, err);
	dispatcher_unlock(station->dispatcher);
	if (r < 0) {
		sluice_close(sluice);
		sluice_unref(sluice);
		return r;
	}
	*ret_sluice = sluice;
	return 0;
}

struct sluice *sluice_ref(struct sluice *sluice)
{
	atomic_fetch_add(&sluice->refs, 1);
	return sluice;
}

void sluice_unref(struct sluice *sluice)
{
	struct dispatcher *dispatcher;

	if (!sluice || atomic_fetch_sub(&sluice->refs, 1) > 1)
		return;
	dispatcher = sluice->station->dispatcher;
	policy_free(sluice->policy);
	stand_ins_fini(&sluice->stand_ins);
	free(sluice->contacts);
	free(sluice->denials);
	dispatcher_lock(dispatcher);
	dispatcher_discard(dispatcher, sluice);
	dispatcher_unlock(dispatcher);
}

void sluice_close(struct sluice *sluice)
{
	struct station *station = sluice->station;

	dispatcher_lock(station->dispatcher);
	if (!sluice->is_closed) {
		sluice->is_closed = true;
		for (struct sluice **at = &station->sluices; *at; at = &(*at)->next) {
			if (*at == sluice) {
				*at = sluice->next;
				break;
			}
		}
		dispatcher_remove(station->dispatcher, &sluice->proxy);
		dispatcher_remove(station->dispatcher, &sluice->dns);
		dispatcher_remove(station->dispatcher, &sluice->dns_stream);
		set_stalled(sluice, false);
		flow_cut_all(sluice);
		dns_service_close(sluice);
	}
	dispatcher_unlock(station->dispatcher);
}

void sluice_change(struct sluice *sluice, const json_t *network, const struct sluice_limits *limits)
{
	struct policy *policy = policy_new(network), *old;

	dispatcher_lock(sluice->station->dispatcher);
	old = sluice->policy;
	sluice->policy = policy;
	sluice->limits = *limits;
	flow_review_all(sluice);
	dispatcher_unlock(sluice->station->dispatcher);
	policy_free(old);
}

/* --- figures --- */

void sluice_count(struct sluice *sluice, struct sluice_counters *ret_counters)
{
	dispatcher_lock(sluice->station->dispatcher);
	*ret_counters = sluice->counters;
	dispatcher_unlock(sluice->station->dispatcher);
}

static int compare_age(const void *a, const void *b)
{
	const struct egress_denial *one = a, *other = b;

	return (one->at_ms < other->at_ms) - (one->at_ms > other->at_ms);
}

size_t sluice_denials(struct sluice *sluice, struct egress_denial ret_denials[SLUICE_DENIALS_MAX])
{
	size_t count = 0;

	dispatcher_lock(sluice->station->dispatcher);
	while (sluice->denials && count < SLUICE_DENIALS_MAX && sluice->denials[count].count > 0) {
		ret_denials[count] = sluice->denials[count];
		count++;
	}
	dispatcher_unlock(sluice->station->dispatcher);
	qsort(ret_denials, count, sizeof(*ret_denials), compare_age);
	return count;
}

size_t sluice_contacts(
	struct sluice *sluice, char ret_rules[SLUICE_CONTACTS_MAX][EGRESS_NAME_MAX + 8])
{
	size_t count;

	dispatcher_lock(sluice->station->dispatcher);
	count = sluice->contact_count;
	for (size_t i = 0; i < count; i++)
		memcpy(ret_rules[i], sluice->contacts[i].rule, sizeof(ret_rules[i]));
	dispatcher_unlock(sluice->station->dispatcher);
	return count;
}
