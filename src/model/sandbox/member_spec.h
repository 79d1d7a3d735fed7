/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a sandbox: what runs beside it in a role, such as its database. A member has a template,
 * processes and limits of its own, and shares the network and the workspace of the sandbox. The sandbox itself is
 * the member `primary`.
 *
 * As the record of a sandbox keeps them they are an array, in order of start, of
 * {"role", "id", "template", "port", "depends_on": [roles], "health": {...}, "restart"}, in which `health` is
 * {"command"} or {"port"} or {"port", "path"}, with "interval_ms", "timeout_ms", "retries" and "start_period_ms", or {}: none, and
 * `port` is 0 for none. The entry of the primary, if there is one, has the id "", and `given`: the environment that it
 * has of its members ({"DATABASE_URL": ...}).
 */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_record.h"
#include "model/text_map.h"

#define MEMBERS_MAX	       5 /* the roles */
#define MEMBER_COMMAND_MAX     4096
#define MEMBER_PATH_MAX	       512
#define MEMBER_INTERVAL_MAX_MS 3600000
#define MEMBER_RETRIES_MAX     1000

enum member_role {
	MEMBER_PRIMARY,
	MEMBER_FRONTEND,
	MEMBER_BACKEND,
	MEMBER_DATABASE,
	MEMBER_CACHE,
	MEMBER_ROLE_COUNT,
};

/* The names, in that order and ended by NULL. */
extern const char *const member_roles[];
/* When a command that ended is run again. */
extern const char *const member_restarts[];

struct member_health {
	const char *command; /* exits with 0; NULL: none */
	uint16_t port;	     /* takes a connection; 0: none */
	const char *path; /* is answered over HTTP on the port with 2xx or 3xx; NULL: not asked */
	/* 0: the default; the last: until one that never was healthy is called unhealthy */
	uint64_t interval_ms, timeout_ms, retries, start_period_ms;
	bool is_given;
};

/* As a caller asks for one; a member of zeros is the default, and all texts are borrowed. */
struct member_spec {
	const char *role;
	const char *template_name; /* NULL: host */
	const char *command;	   /* a line for /bin/sh; NULL: what its template starts */
	struct text_map env;
	struct resources resources;
	uint16_t port;		     /* where it serves; 0: the first of its template */
	struct text_list depends_on; /* texts NULL: the usual */
	struct member_health health;
	const char *restart; /* NULL: on-failure */
};

/* MEMBER_ROLE_COUNT if there is none of that name. */
enum member_role member_role_parse(const char *name);

/* Whether these can be right at all; ERR_INVALID names the field. */
int member_spec_check(const struct member_spec *members, size_t count, struct err *err) must_check;

/*
 * Puts entries of a record in order, so that each comes after those that it depends on, and checks that no two
 * have one port. ERR_INVALID names the field.
 */
int member_spec_sort(json_t *entries, struct err *err) must_check;

/* The entry of a role; NULL if there is none. Borrowed. */
json_t *member_spec_find(const json_t *entries, const char *role);

/* As the record keeps it; new. */
json_t *member_health_to_json(const struct member_health *health);
