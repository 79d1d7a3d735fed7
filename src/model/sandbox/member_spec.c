/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/member_spec.h"

#include <string.h>

const char *const member_roles[] = {
	[MEMBER_PRIMARY] = "primary",
	[MEMBER_FRONTEND] = "frontend",
	[MEMBER_BACKEND] = "backend",
	[MEMBER_DATABASE] = "database",
	[MEMBER_CACHE] = "cache",
	[MEMBER_ROLE_COUNT] = NULL,
};

const char *const member_restarts[] = {"on-failure", "always", "never", NULL};

enum member_role member_role_parse(const char *name)
{
	int role = 0;

	while (role < MEMBER_ROLE_COUNT && strcmp(member_roles[role], name) != 0)
		role++;
	return (enum member_role)role;
}

static const char *role_of(const json_t *entry)
{
	return json_string_value(json_object_get(entry, "role"));
}

json_t *member_spec_find(const json_t *entries, const char *role)
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry)
	{
		if (strcmp(role_of(entry), role) == 0)
			return entry;
	}
	return NULL;
}

/* --- what can be right at all --- */

static int refuse(size_t index, const char *field, const char *why, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_field", NULL, "field members[%zu].%s %s",
		index, field, why);
}

static bool has_role(const struct member_spec *members, size_t count, const char *role)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(members[i].role, role) == 0)
			return true;
	}
	return false;
}

static int check_depends(
	const struct member_spec *members, size_t count, size_t at, struct err *err)
{
	const struct text_list *depends_on = &members[at].depends_on;

	for (size_t i = 0; i < depends_on->count; i++) {
		const char *role = depends_on->texts[i];

		if (strcmp(role, members[at].role) == 0)
			return refuse(at, "depends_on", "names the member itself", err);
		if (strcmp(role, member_roles[MEMBER_PRIMARY]) != 0 &&
			!has_role(members, count, role))
			return refuse(at, "depends_on", "names a member that is not there", err);
	}
	return 0;
}

static int check_health(const struct member_health *health, size_t at, struct err *err)
{
	if (!health->is_given)
		return 0;
	if (!health->command == !health->port)
		return refuse(at, "health", "must have either command or port", err);
	if (health->path && (health->path[0] != '/' || strpbrk(health->path, " \r\n")))
		return refuse(at, "health.path", "must begin with / and have no blanks", err);
	if (health->path && !health->port)
		return refuse(at, "health.path", "goes with port", err);
	return 0;
}

int member_spec_check(const struct member_spec *members, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct member_spec *member = &members[i];
		int r;

		if (member_role_parse(member->role) == MEMBER_ROLE_COUNT)
			return refuse(i, "role",
				"must be primary, frontend, backend, database or cache", err);
		if (has_role(members, i, member->role))
			return refuse(i, "role", "is there twice", err);
		if ((r = check_depends(members, count, i, err)) < 0 ||
			(r = check_health(&member->health, i, err)) < 0)
			return r;
	}
	return 0;
}

/* --- in order --- */

static bool is_ready(const json_t *entry, const json_t *entries, const json_t *sorted)
{
	json_t *role;
	size_t i;

	json_array_foreach(json_object_get(entry, "depends_on"), i, role)
	{
		const char *name = json_string_value(role);

		/* One that is in no entry is the primary, which comes before all. */
		if (member_spec_find(entries, name) && !member_spec_find(sorted, name))
			return false;
	}
	return true;
}

static int check_ports(const json_t *entries, struct err *err)
{
	json_t *one, *other;
	size_t i, j;

	json_array_foreach((json_t *)entries, i, one)
	{
		json_int_t port = json_integer_value(json_object_get(one, "port"));

		json_array_foreach((json_t *)entries, j, other)
		{
			if (j < i && port &&
				json_integer_value(json_object_get(other, "port")) == port)
				return err_explain(err, ERR_INVALID, "port_taken",
					"give one of them another `port`: all members share one "
					"network",
					"field members: %s and %s both serve on port %d",
					role_of(other), role_of(one), (int)port);
		}
	}
	return 0;
}

int member_spec_sort(json_t *entries, struct err *err)
{
	json_auto_t *sorted = json_array();
	size_t count = json_array_size(entries), i;
	json_t *entry;

	for (size_t round = 0; round < count; round++) {
		json_array_foreach(entries, i, entry)
		{
			if (!member_spec_find(sorted, role_of(entry)) &&
				is_ready(entry, entries, sorted))
				json_array_append(sorted, entry);
		}
	}
	if (json_array_size(sorted) < count)
		return err_explain(err, ERR_INVALID, "invalid_field",
			"leave out a dependency; the primary depends on database and cache unless "
			"an entry of its own says otherwise",
			"field members: what they depend on goes round in a circle");
	json_array_clear(entries);
	json_array_extend(entries, sorted);
	return check_ports(entries, err);
}

json_t *member_health_to_json(const struct member_health *health)
{
	json_t *object = json_object();

	if (health->command)
		json_object_set_new(object, "command", json_string(health->command));
	if (health->port)
		json_object_set_new(object, "port", json_integer(health->port));
	if (health->path)
		json_object_set_new(object, "path", json_string(health->path));
	if (health->interval_ms)
		json_object_set_new(
			object, "interval_ms", json_integer((json_int_t)health->interval_ms));
	if (health->timeout_ms)
		json_object_set_new(
			object, "timeout_ms", json_integer((json_int_t)health->timeout_ms));
	if (health->retries)
		json_object_set_new(object, "retries", json_integer((json_int_t)health->retries));
	if (health->start_period_ms)
		json_object_set_new(object, "start_period_ms",
			json_integer((json_int_t)health->start_period_ms));
	return object;
}
