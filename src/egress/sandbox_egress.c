/* SPDX-License-Identifier: Apache-2.0 */
/* The egress of one sandbox: its policy, its limits, and a record of what it tried. */
#include "base/clock.h"
#include "base/fd.h"
#include "egress/egress.h"
#include "egress/egress_private.h"
#include "model/access/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ACCEPTS_AT_A_TIME 32
#define BURST_MS	  200 /* of its bandwidth, that may come at once */
#define TOLD_MAX	  10 /* refusals in a second that config.denied is told of; all are counted */

static const char *const reason_names[EGRESS_DENIAL_REASON_COUNT] = {
	[EGRESS_NOT_ALLOWED] = "not_allowed",
	[EGRESS_PRIVATE_ADDRESS] = "private_address",
	[EGRESS_OTHER_NAME] = "other_name",
	[EGRESS_FORGOTTEN_NAME] = "forgotten_name",
	[EGRESS_TOO_MANY] = "too_many_connections",
	[EGRESS_NO_SUCH_NAME] = "no_such_name",
	[EGRESS_NO_ANSWER] = "no_answer",
};

const char *egress_denial_reason_name(enum egress_denial_reason reason)
{
	return reason_names[reason];
}

/* --- judging and noting --- */

bool sandbox_egress_judge(const struct sandbox_egress *sandbox, const struct authority *target,
	enum egress_denial_reason *ret_reason)
{
	*ret_reason = EGRESS_NOT_ALLOWED;
	if (target->name[0])
		return policy_allows_name(sandbox->policy, target->name, target->port);
	return policy_allows_address(sandbox->policy, target->address, target->port);
}

/* Whether the name is that of a secret inside: <name>.internal. */
static bool is_alias(const char *name, const char *secret_name)
{
	size_t len = strlen(secret_name);

	return strncmp(name, secret_name, len) == 0 && strcmp(name + len, "." SECRET_DOMAIN) == 0;
}

static bool is_server_itself(
	const struct secret_cache_secret *secret, const struct authority *target)
{
	const struct secret_server *server = &secret->server;

	return !server->is_tls && authority_equals(&server->at, target);
}

static const struct secret_cache_secret *nth_secret(const struct sandbox_egress *sandbox, size_t i)
{
	struct secret_cache *secret_cache = sandbox->worker->egress->config.secret_cache;
	const char *name = policy_secret(sandbox->policy, i);

	return secret_cache && name ? secret_cache_find(secret_cache, &sandbox->owner, name) : NULL;
}

const struct secret_cache_secret *sandbox_egress_find_secret(
	const struct sandbox_egress *sandbox, const struct authority *target)
{
	for (size_t i = 0; policy_secret(sandbox->policy, i); i++) {
		const struct secret_cache_secret *secret = nth_secret(sandbox, i);

		if (secret && ((target->port == SECRET_PORT &&
				       is_alias(target->name, secret->record.name)) ||
				      is_server_itself(secret, target)))
			return secret;
		secret_cache_secret_unref(secret);
	}
	return NULL;
}

bool sandbox_egress_serves_name(const struct sandbox_egress *sandbox, const char *name)
{
	bool serves = false;

	for (size_t i = 0; policy_secret(sandbox->policy, i) && !serves; i++) {
		const struct secret_cache_secret *secret = nth_secret(sandbox, i);

		serves = secret && (is_alias(name, secret->record.name) ||
					   (!secret->server.is_tls &&
						   strcmp(secret->server.at.name, name) == 0));
		secret_cache_secret_unref(secret);
	}
	return serves;
}

/* The entry for a denial: its own, a free one, or the oldest. */
static struct egress_denial *place_for_denial(
	struct sandbox_egress *sandbox, const char *what, enum egress_denial_reason reason)
{
	struct egress_denial *oldest;

	if (!sandbox->denials)
		sandbox->denials = mem_new(SANDBOX_EGRESS_DENIALS_MAX * sizeof(*sandbox->denials));
	oldest = &sandbox->denials[0];
	for (size_t i = 0; i < SANDBOX_EGRESS_DENIALS_MAX; i++) {
		struct egress_denial *denial = &sandbox->denials[i];

		if (denial->count == 0 ||
			(denial->reason == reason && strcmp(denial->target, what) == 0))
			return denial;
		if (denial->at_ms < oldest->at_ms)
			oldest = denial;
	}
	oldest->count = 0;
	return oldest;
}

static bool may_tell(struct sandbox_egress *sandbox)
{
	uint64_t now = clock_steady_ms();

	if (now - sandbox->told_since_ms >= 1000) {
		sandbox->told_since_ms = now;
		sandbox->told_count = 0;
	}
	return sandbox->told_count++ < TOLD_MAX;
}

/* Counts one more of a kind. Whether it is the first. */
static bool note(struct sandbox_egress *sandbox, const char *what, const char *rule,
	enum egress_denial_reason reason, struct egress_denial **ret_denial)
{
	struct egress_denial *denial = place_for_denial(sandbox, what, reason);

	snprintf(denial->target, sizeof(denial->target), "%s", what);
	snprintf(denial->rule, sizeof(denial->rule), "%s", rule);
	denial->reason = reason;
	denial->at_ms = clock_wall_ms();
	*ret_denial = denial;
	return denial->count++ == 0;
}

void sandbox_egress_deny(struct sandbox_egress *sandbox, const char *what, const char *rule,
	enum egress_denial_reason reason)
{
	const struct egress_config *config = &sandbox->worker->egress->config;
	struct egress_denial *denial;
	bool is_new = note(sandbox, what, rule, reason, &denial);

	sandbox->counters.denied++;
	if (is_new && config->denied && may_tell(sandbox))
		config->denied(config->arg, sandbox->sandbox_id, denial);
}

void sandbox_egress_note_lookup(struct sandbox_egress *sandbox, const char *name, int result)
{
	struct egress_denial *ignored;

	if (result < 0) {
		(void)note(sandbox, name, "",
			result == -ENOENT ? EGRESS_NO_SUCH_NAME : EGRESS_NO_ANSWER, &ignored);
		return;
	}
	/* Found now: what failed before is no news any more. Entries without a count end the list. */
	for (size_t i = 0, kept = 0; sandbox->denials && i < SANDBOX_EGRESS_DENIALS_MAX; i++) {
		struct egress_denial denial = sandbox->denials[i];

		sandbox->denials[i].count = 0;
		if (denial.count > 0 && (egress_denial_is_refusal(denial.reason) ||
						strcmp(denial.target, name) != 0))
			sandbox->denials[kept++] = denial;
	}
}

/* Whether what was refused would pass now: the rule that it lacked says what that was. */
static bool is_allowed_now(const struct sandbox_egress *sandbox, const struct egress_denial *denial)
{
	const struct policy *policy = sandbox->policy;
	struct egress_rule lacked;

	if (egress_rule_parse(denial->rule, &lacked) < 0)
		return false;
	if (denial->reason == EGRESS_PRIVATE_ADDRESS)
		return lacked.kind == EGRESS_NETWORK &&
		       policy_allows_behind_name(policy, lacked.network, lacked.port);
	if (denial->reason != EGRESS_NOT_ALLOWED)
		return false;
	if (lacked.kind == EGRESS_NETWORK)
		return policy_allows_address(policy, lacked.network, lacked.port);
	return sandbox_egress_serves_name(sandbox, lacked.name) ||
	       (lacked.port ? policy_allows_name(policy, lacked.name, lacked.port)
			    : policy_knows_name(policy, lacked.name));
}

/* A list of refusals is a list of what to do: what has been done leaves it. The counter keeps all. */
static void forget_allowed(struct sandbox_egress *sandbox)
{
	size_t kept = 0;

	for (size_t i = 0;
		sandbox->denials && i < SANDBOX_EGRESS_DENIALS_MAX && sandbox->denials[i].count > 0;
		i++) {
		struct egress_denial denial = sandbox->denials[i];

		sandbox->denials[i].count = 0;
		if (!is_allowed_now(sandbox, &denial))
			sandbox->denials[kept++] = denial;
	}
}

void sandbox_egress_note_contact(struct sandbox_egress *sandbox, const struct authority *target)
{
	char rule[EGRESS_NAME_MAX + 8];

	authority_format(target, 0, rule);
	for (size_t i = 0; i < sandbox->contact_count; i++) {
		if (strcmp(sandbox->contacts[i].rule, rule) == 0)
			return;
	}
	if (sandbox->contact_count == SANDBOX_EGRESS_CONTACTS_MAX)
		return;
	if (!sandbox->contacts)
		sandbox->contacts =
			mem_new(SANDBOX_EGRESS_CONTACTS_MAX * sizeof(*sandbox->contacts));
	memcpy(sandbox->contacts[sandbox->contact_count++].rule, rule, sizeof(rule));
}

/* --- bandwidth: a bucket that fills with time and may be overdrawn by one turn --- */

static void refill(struct sandbox_egress *sandbox)
{
	uint64_t now = clock_steady_ms(), elapsed = now - sandbox->refilled_ms;
	int64_t most = (int64_t)(sandbox->limits.bandwidth * BURST_MS / 1000);

	if (elapsed > BURST_MS)
		elapsed = BURST_MS;
	sandbox->refilled_ms = now;
	sandbox->allowance += (int64_t)(sandbox->limits.bandwidth * elapsed / 1000);
	if (sandbox->allowance > most)
		sandbox->allowance = most;
}

size_t sandbox_egress_budget(struct sandbox_egress *sandbox, size_t wanted)
{
	if (sandbox->limits.bandwidth == 0)
		return wanted;
	/* Not at each call: less than a byte a millisecond would be lost in rounding. */
	if (clock_steady_ms() - sandbox->refilled_ms >= EGRESS_THREAD_TICK_MS)
		refill(sandbox);
	if (sandbox->allowance <= 0)
		return 0;
	return (uint64_t)sandbox->allowance < wanted ? (size_t)sandbox->allowance : wanted;
}

void sandbox_egress_spend(struct sandbox_egress *sandbox, size_t bytes)
{
	if (sandbox->limits.bandwidth > 0)
		sandbox->allowance -= (int64_t)bytes;
}

/* --- life --- */

static void set_stalled(struct sandbox_egress *sandbox, bool is_stalled)
{
	if (sandbox->is_stalled != is_stalled)
		egress_thread_wait_for_time(sandbox->worker->thread, is_stalled);
	sandbox->is_stalled = is_stalled;
}

static void accept_all(void *arg)
{
	struct sandbox_egress *sandbox = arg;

	for (int i = 0; i < ACCEPTS_AT_A_TIME; i++) {
		int fd = accept4(sandbox->proxy.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			set_stalled(sandbox, errno == EMFILE || errno == ENFILE);
			return;
		}
		egress_conn_accept(sandbox, fd);
	}
	egress_thread_requeue(sandbox->worker->thread, &sandbox->proxy);
}

void sandbox_egress_tick(struct sandbox_egress *sandbox, uint64_t now_ms)
{
	egress_conn_tick_all(sandbox, now_ms);
	if (sandbox->is_stalled)
		accept_all(sandbox);
}

static int add_source(struct sandbox_egress *sandbox, struct source *source, int fd,
	void (*ready)(void *owner), struct err *err)
{
	int r;

	*source = (struct source){.fd = fd, .ready = ready, .owner = sandbox};
	r = egress_thread_add_reader(sandbox->worker->thread, source);
	return r < 0 ? err_from(err, r, "serve the network of sandbox %s", sandbox->sandbox_id) : 0;
}

static int open_sources(struct sandbox_egress *sandbox,
	const struct sandbox_egress_sockets *sockets, struct err *err)
{
	int dns = add_source(sandbox, &sandbox->dns, sockets->dns_fd, dns_service_read, err);
	int stream = add_source(
		sandbox, &sandbox->dns_stream, sockets->dns_stream_fd, dns_service_accept, err);
	int proxy = add_source(sandbox, &sandbox->proxy, sockets->proxy_fd, accept_all, err);

	return dns < 0 ? dns : stream < 0 ? stream : proxy;
}

static void set_identity(
	struct sandbox_egress *sandbox, const struct sandbox_egress_identity *identity)
{
	snprintf(sandbox->sandbox_id, sizeof(sandbox->sandbox_id), "%s", identity->sandbox_id);
	snprintf(sandbox->hostname, sizeof(sandbox->hostname), "%s", identity->hostname);
	sandbox->owner = *identity->owner;
	sandbox->owner_key = owner_key(identity->owner);
	sandbox->is_operators = owner_is_operator(identity->owner);
	sandbox->asker = (struct resolver_asker){
		.owner = sandbox->owner_key, .is_operator = sandbox->is_operators};
}

int sandbox_egress_open(struct egress *egress, const struct sandbox_egress_identity *party,
	const struct sandbox_egress_sockets *sockets, const json_t *network,
	const struct sandbox_egress_limits *limits, struct sandbox_egress **ret_egress,
	struct err *err)
{
	unsigned turn = atomic_fetch_add(&egress->next_worker, 1);
	struct egress_worker *worker = &egress->workers[turn % egress->worker_count];
	struct sandbox_egress *sandbox = mem_new(sizeof(*sandbox));
	int r;

	sandbox->refs = 1;
	sandbox->worker = worker;
	set_identity(sandbox, party);
	sandbox->policy = policy_new(network);
	sandbox->limits = *limits;
	sandbox->has_v6 = fd_family(sockets->proxy_fd) == AF_INET6; /* then it is for both */
	sandbox->refilled_ms = clock_steady_ms();
	egress_thread_lock(worker->thread);
	sandbox->next = worker->sandboxes;
	worker->sandboxes = sandbox;
	r = open_sources(sandbox, sockets, err);
	egress_thread_unlock(worker->thread);
	if (r < 0) {
		sandbox_egress_close(sandbox);
		sandbox_egress_unref(sandbox);
		return r;
	}
	*ret_egress = sandbox;
	return 0;
}

struct sandbox_egress *sandbox_egress_ref(struct sandbox_egress *sandbox)
{
	atomic_fetch_add(&sandbox->refs, 1);
	return sandbox;
}

void sandbox_egress_unref(struct sandbox_egress *sandbox)
{
	struct egress_thread *thread;

	if (!sandbox || atomic_fetch_sub(&sandbox->refs, 1) > 1)
		return;
	thread = sandbox->worker->thread;
	policy_free(sandbox->policy);
	fake_addresses_fini(&sandbox->fake_addresses);
	free(sandbox->contacts);
	free(sandbox->denials);
	egress_thread_lock(thread);
	egress_thread_discard(thread, sandbox);
	egress_thread_unlock(thread);
}

void sandbox_egress_close(struct sandbox_egress *sandbox)
{
	struct egress_worker *worker = sandbox->worker;

	egress_thread_lock(worker->thread);
	if (!sandbox->is_closed) {
		sandbox->is_closed = true;
		for (struct sandbox_egress **at = &worker->sandboxes; *at; at = &(*at)->next) {
			if (*at == sandbox) {
				*at = sandbox->next;
				break;
			}
		}
		egress_thread_remove(worker->thread, &sandbox->proxy);
		egress_thread_remove(worker->thread, &sandbox->dns);
		egress_thread_remove(worker->thread, &sandbox->dns_stream);
		set_stalled(sandbox, false);
		egress_conn_cut_all(sandbox);
		dns_service_close(sandbox);
	}
	egress_thread_unlock(worker->thread);
}

void sandbox_egress_change(struct sandbox_egress *sandbox, const json_t *network,
	const struct sandbox_egress_limits *limits)
{
	struct policy *policy = policy_new(network), *old;

	egress_thread_lock(sandbox->worker->thread);
	old = sandbox->policy;
	sandbox->policy = policy;
	sandbox->limits = *limits;
	forget_allowed(sandbox);
	egress_conn_review_all(sandbox);
	egress_thread_unlock(sandbox->worker->thread);
	policy_free(old);
}

void sandbox_egress_give(struct sandbox_egress *sandbox, const struct sandbox_egress_identity *to)
{
	egress_thread_lock(sandbox->worker->thread);
	set_identity(sandbox, to);
	egress_thread_unlock(sandbox->worker->thread);
}

/* --- figures --- */

void sandbox_egress_count(
	struct sandbox_egress *sandbox, struct sandbox_egress_counters *ret_counters)
{
	egress_thread_lock(sandbox->worker->thread);
	*ret_counters = sandbox->counters;
	egress_thread_unlock(sandbox->worker->thread);
}

static int compare_age(const void *a, const void *b)
{
	const struct egress_denial *one = a, *other = b;

	return (one->at_ms < other->at_ms) - (one->at_ms > other->at_ms);
}

size_t sandbox_egress_denials(struct sandbox_egress *sandbox,
	struct egress_denial ret_denials[SANDBOX_EGRESS_DENIALS_MAX])
{
	size_t count = 0;

	egress_thread_lock(sandbox->worker->thread);
	while (sandbox->denials && count < SANDBOX_EGRESS_DENIALS_MAX &&
		sandbox->denials[count].count > 0) {
		ret_denials[count] = sandbox->denials[count];
		count++;
	}
	egress_thread_unlock(sandbox->worker->thread);
	qsort(ret_denials, count, sizeof(*ret_denials), compare_age);
	return count;
}

size_t sandbox_egress_contacts(struct sandbox_egress *sandbox,
	char ret_rules[SANDBOX_EGRESS_CONTACTS_MAX][EGRESS_NAME_MAX + 8])
{
	size_t count;

	egress_thread_lock(sandbox->worker->thread);
	count = sandbox->contact_count;
	for (size_t i = 0; i < count; i++)
		memcpy(ret_rules[i], sandbox->contacts[i].rule, sizeof(ret_rules[i]));
	egress_thread_unlock(sandbox->worker->thread);
	return count;
}
