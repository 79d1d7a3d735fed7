/* SPDX-License-Identifier: Apache-2.0 */
#include "store/access/store_quota.h"

#include "store/store_clock.h"
#include "store/store_private.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_MS	60000
#define RETRY_LATER_S	30 /* when it takes somebody who makes room */
#define REMEDY_ROOM	"end what is not needed, or ask the administrator for a higher quota"
#define REMEDY_PATIENCE "try again a little later"

void store_quota_set_defaults(
	struct store *store, const struct quota *organization, const struct quota *user)
{
	store->default_quotas[0] = *organization;
	store->default_quotas[1] = *user;
}

/* --- all of these with the lock held --- */

static struct db_stmt *use_for(struct store *store, enum query query, const struct owner *whom)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, whom->organization);
	db_bind_text(stmt, 2, whom->user);
	return stmt;
}

/* Whether anybody has a quota of their own: asked once after each change, since creates and claims look twice. */
static int look_for_any(struct store *store, struct err *err)
{
	struct db_stmt *stmt;
	int code;

	if (store->quotas != QUOTAS_UNKNOWN)
		return 0;
	stmt = store_use(store, Q_QUOTA_ANY);
	code = db_step(stmt);
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "look for quotas", err);
	store->quotas = code == DB_ROW ? QUOTAS_SOME : QUOTAS_NONE;
	return 0;
}

static int read_limits(struct store *store, const struct owner *whom, bool *ret_is_set,
	struct quota *ret_limits, struct err *err)
{
	int code = DB_DONE, r = look_for_any(store, err);
	struct db_stmt *stmt = NULL;
	struct quota own;

	if (r < 0)
		return r;
	quota_clear(&own);
	if (store->quotas == QUOTAS_SOME) {
		stmt = use_for(store, Q_QUOTA_GET, whom);
		code = db_step(stmt);
	}
	for (int kind = 0; code == DB_ROW && kind < QUOTA_KIND_COUNT; kind++)
		own.limits[kind] = db_column_int(stmt, kind);
	if (code == DB_ROW)
		own.danger = (int)db_column_int(stmt, QUOTA_KIND_COUNT);
	if (stmt)
		db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "read a quota", err);
	*ret_is_set = code == DB_ROW;
	*ret_limits = quota_over(&own, &store->default_quotas[whom->user[0] != '\0']);
	return 0;
}

static int read_numbers(struct store *store, enum query query, const struct owner *whom,
	uint64_t *numbers[], size_t count, struct err *err)
{
	struct db_stmt *stmt = use_for(store, query, whom);
	int code = db_step(stmt);

	for (size_t i = 0; code == DB_ROW && i < count; i++)
		*numbers[i] = (uint64_t)db_column_int(stmt, (int)i);
	db_reset(stmt);
	return code == DB_ROW || code == DB_DONE ? 0 : store_fail(store, "count use", err);
}

/* Creates are paced: each takes its share of a minute, and a minute may be taken at once. `until` is
 * when all that was taken is given back. */
static int64_t pace_of(const struct quota *limits)
{
	return limits->limits[QUOTA_CREATES] > 0 ? MINUTE_MS / limits->limits[QUOTA_CREATES] : 0;
}

static int read_until(
	struct store *store, const struct owner *whom, int64_t *ret_until_ms, struct err *err)
{
	int64_t now = store_clock_ms(store);
	uint64_t until = 0, *numbers[] = {&until};
	int r = read_numbers(store, Q_QUOTA_PACE_GET, whom, numbers, 1, err);

	*ret_until_ms = (int64_t)until;
	if (*ret_until_ms < now)
		*ret_until_ms = now;
	/* More than that is never taken; an entry from a clock that was wrong must not lock anybody out. */
	if (*ret_until_ms > now + 2 * MINUTE_MS)
		*ret_until_ms = now;
	return r;
}

/* Adds what an owner, or all of an organization, uses beside the rows. */
static void add_claims(struct store *store, const struct owner *whom, struct quota_amounts *used)
{
	pthread_mutex_lock(&store->claims_lock);
	for (const struct quota_claim *at = store->claims; at; at = at->next) {
		if (strcmp(at->owner.organization, whom->organization) != 0 ||
			(whom->user[0] && strcmp(at->owner.user, whom->user) != 0))
			continue;
		for (int kind = 0; kind < QUOTA_KIND_COUNT; kind++)
			used->of[kind] += at->amounts.of[kind];
	}
	pthread_mutex_unlock(&store->claims_lock);
}

static int read_use(struct store *store, const struct owner *whom, const struct quota *limits,
	struct quota_amounts *ret_used, struct err *err)
{
	struct quota_amounts used = {0};
	uint64_t *of_sandboxes[] = {&used.of[QUOTA_SANDBOXES], &used.of[QUOTA_RUNNING],
		&used.of[QUOTA_CPU], &used.of[QUOTA_MEMORY]};
	uint64_t *of_workspaces[] = {&used.of[QUOTA_WORKSPACES], &used.of[QUOTA_DISK]};
	uint64_t *of_images[] = {&used.of[QUOTA_IMAGES]};
	uint64_t *of_projects[] = {&used.of[QUOTA_PROJECTS]};
	int64_t until = 0;
	int r = read_numbers(store, Q_QUOTA_USE, whom, of_sandboxes, array_len(of_sandboxes), err);

	if (r == 0)
		r = read_numbers(store, Q_QUOTA_WORKSPACES, whom, of_workspaces,
			array_len(of_workspaces), err);
	if (r == 0)
		r = read_numbers(store, Q_QUOTA_IMAGES, whom, of_images, 1, err);
	if (r == 0)
		r = read_numbers(store, Q_QUOTA_PROJECTS, whom, of_projects, 1, err);
	if (r == 0 && pace_of(limits) > 0) {
		r = read_until(store, whom, &until, err);
		/* Rounded up: what is half given back is not there yet. */
		used.of[QUOTA_CREATES] =
			(uint64_t)((until - store_clock_ms(store) + pace_of(limits) - 1) /
				   pace_of(limits));
	}
	if (r == 0)
		add_claims(store, whom, &used);
	if (r == 0)
		*ret_used = used;
	return r;
}

static int refuse(const struct owner *whom, enum quota_kind kind, const struct quota_state *state,
	const struct quota_amounts *wanted, struct err *err)
{
	uint64_t before = state->used.of[kind] - wanted->of[kind];
	bool is_pace = kind == QUOTA_CREATES;
	char limit[QUOTA_TEXT_LEN], used[QUOTA_TEXT_LEN];
	int r;

	quota_describe(kind, (uint64_t)state->limits.limits[kind], limit);
	quota_describe(kind, state->used.of[kind] > wanted->of[kind] ? before : 0, used);
	r = err_explain(err, ERR_RATE, "quota_exceeded", is_pace ? REMEDY_PATIENCE : REMEDY_ROOM,
		"the quota %s of %s %s is used up: limit %s, in use %s", quota_name(kind),
		whom->user[0] ? "user" : "organization",
		whom->user[0] ? whom->user : whom->organization, limit, used);
	if (err)
		err->retry_after_s = is_pace && pace_of(&state->limits) > 0
					     ? (unsigned)(pace_of(&state->limits) + 999) / 1000
					     : RETRY_LATER_S;
	return r;
}

static int take_pace(
	struct store *store, const struct owner *whom, const struct quota *limits, struct err *err)
{
	struct db_stmt *stmt;
	int64_t until;
	int r = read_until(store, whom, &until, err);

	if (r < 0)
		return r;
	stmt = use_for(store, Q_QUOTA_PACE_PUT, whom);
	db_bind_int(stmt, 3, until + pace_of(limits));
	return db_run(stmt, "note a create", err);
}

/* Whether what somebody has now, of which `demand` is new, is within their limits. */
static int check_one(struct store *store, const struct owner *whom,
	const struct quota_amounts *wanted, struct err *err)
{
	struct quota_state state;
	int r = read_limits(store, whom, &state.is_set, &state.limits, err);

	if (r < 0 || !quota_limits_anything(&state.limits))
		return r;
	if (wanted->of[QUOTA_CREATES] > 0 && pace_of(&state.limits) > 0)
		r = take_pace(store, whom, &state.limits, err);
	if (r == 0)
		r = read_use(store, whom, &state.limits, &state.used, err);
	for (int kind = 0; r == 0 && kind < QUOTA_KIND_COUNT; kind++) {
		int64_t limit = state.limits.limits[kind];

		if (limit >= 0 && wanted->of[kind] > 0 &&
			(limit == 0 || state.used.of[kind] > (uint64_t)limit))
			return refuse(whom, (enum quota_kind)kind, &state, wanted, err);
	}
	return r;
}

int store_quota_check(struct store *store, const struct owner *owner,
	const struct quota_amounts *wanted, struct err *err)
{
	struct owner organization = *owner;
	int r;

	memset(organization.user, 0, sizeof(organization.user));
	r = check_one(store, &organization, wanted, err);
	return r < 0 ? r : check_one(store, owner, wanted, err);
}

int store_quota_applies(struct store *store, const struct owner *owner, struct err *err)
{
	struct owner organization = *owner;
	struct quota of_organization, of_user;
	bool ignored;
	int r;

	memset(organization.user, 0, sizeof(organization.user));
	r = read_limits(store, &organization, &ignored, &of_organization, err);
	if (r == 0)
		r = read_limits(store, owner, &ignored, &of_user, err);
	if (r < 0)
		return r;
	return quota_limits_anything(&of_organization) || quota_limits_anything(&of_user);
}

static int check_more(struct store *store, const struct owner *whom, enum quota_kind kind,
	uint64_t bytes, struct err *err)
{
	static const enum query uses[QUOTA_KIND_COUNT] = {
		[QUOTA_IMAGES] = Q_QUOTA_IMAGES, [QUOTA_PROJECTS] = Q_QUOTA_PROJECTS};
	struct quota_amounts wanted = {0};
	struct quota_state state = {0};
	uint64_t *used = &state.used.of[kind];
	int r = read_limits(store, whom, &state.is_set, &state.limits, err);
	int64_t limit = state.limits.limits[kind];

	if (r < 0 || limit < 0)
		return r;
	r = read_numbers(store, uses[kind], whom, &used, 1, err);
	if (r < 0)
		return r;
	*used += bytes;
	wanted.of[kind] = bytes;
	return *used > (uint64_t)limit ? refuse(whom, kind, &state, &wanted, err) : 0;
}

/* --- for everybody --- */

int store_quota_claim(struct store *store, const struct owner *owner,
	const struct quota_amounts *amounts, struct quota_claim *claim, struct err *err)
{
	int r;

	*claim = (struct quota_claim){.owner = *owner, .amounts = *amounts};
	/* Whoever else checks meanwhile waits for the lock, and so counts this. */
	pthread_mutex_lock(&store->lock);
	pthread_mutex_lock(&store->claims_lock);
	claim->next = store->claims;
	store->claims = claim;
	pthread_mutex_unlock(&store->claims_lock);
	r = store_quota_check(store, owner, amounts, err);
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		store_quota_give_back(store, claim);
	return r;
}

void store_quota_give_back(struct store *store, struct quota_claim *claim)
{
	pthread_mutex_lock(&store->claims_lock);
	for (struct quota_claim **at = &store->claims; *at; at = &(*at)->next) {
		if (*at == claim) {
			*at = claim->next;
			break;
		}
	}
	pthread_mutex_unlock(&store->claims_lock);
}

int store_quota_check_more(struct store *store, const struct owner *owner, enum quota_kind kind,
	uint64_t bytes, struct err *err)
{
	struct owner organization = *owner;
	int r;

	memset(organization.user, 0, sizeof(organization.user));
	pthread_mutex_lock(&store->lock);
	r = check_more(store, &organization, kind, bytes, err);
	if (r == 0)
		r = check_more(store, owner, kind, bytes, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_quota_danger(struct store *store, const struct owner *owner,
	enum danger_policy *ret_policy, struct err *err)
{
	struct owner organization = *owner;
	struct quota of_organization, of_user;
	bool ignored;
	int r;

	memset(organization.user, 0, sizeof(organization.user));
	pthread_mutex_lock(&store->lock);
	r = read_limits(store, &organization, &ignored, &of_organization, err);
	if (r == 0)
		r = read_limits(store, owner, &ignored, &of_user, err);
	pthread_mutex_unlock(&store->lock);
	if (r == 0)
		*ret_policy = (enum danger_policy)(of_user.danger > of_organization.danger
							   ? of_user.danger
							   : of_organization.danger);
	return r;
}

int store_quota_put(
	struct store *store, const struct owner *whom, const struct quota *quota, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = use_for(store, Q_QUOTA_PUT, whom);
	for (int kind = 0; kind < QUOTA_KIND_COUNT; kind++)
		db_bind_int(stmt, 3 + kind, quota->limits[kind]);
	db_bind_int(stmt, 3 + QUOTA_KIND_COUNT, quota->danger);
	r = db_run(stmt, "set a quota", err);
	store->quotas = QUOTAS_UNKNOWN;
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_quota_delete(struct store *store, const struct owner *whom, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_for(store, Q_QUOTA_DELETE, whom), "delete a quota", err);
	store->quotas = QUOTAS_UNKNOWN;
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(err, ERR_NOT_FOUND, "quota_not_found", NULL,
			"no quota is set for %s%s%s", whom->organization, whom->user[0] ? "/" : "",
			whom->user);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_quota_owners(struct store *store, const struct owner *after,
	struct owner ret_owners[STORE_QUOTA_OWNERS_MAX], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = use_for(store, Q_QUOTA_OWNERS, after);
	db_bind_int(stmt, 3, STORE_QUOTA_OWNERS_MAX);
	while ((code = db_step(stmt)) == DB_ROW) {
		struct owner *owner = &ret_owners[count++];

		store_read_text(stmt, 0, owner->organization, sizeof(owner->organization));
		store_read_text(stmt, 1, owner->user, sizeof(owner->user));
	}
	if (code != DB_DONE)
		count = store_fail(store, "list the owners", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_quota_get(struct store *store, const struct owner *whom, struct quota_state *ret_state,
	struct err *err)
{
	struct quota_state state = {0};
	int r;

	pthread_mutex_lock(&store->lock);
	r = read_limits(store, whom, &state.is_set, &state.limits, err);
	if (r == 0)
		r = read_use(store, whom, &state.limits, &state.used, err);
	pthread_mutex_unlock(&store->lock);
	if (r == 0)
		*ret_state = state;
	return r;
}
