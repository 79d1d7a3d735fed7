/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas of an organization, or of one of its users. Administrators see and set them; whoever they are
 * for sees them at /v1/quotas.
 */
#include "api/handlers.h"
#include "api/list_page.h"
#include "store/access/store_quota.h"

#include <math.h>
#include <stdio.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

/* A member is a limit, null for none, or absent for the default. */
struct quota_body {
	int64_t sandboxes, running, workspaces, memory, disk, images, projects, creates_per_minute;
	double cpu;
	const char *dangerous_commands;
};

#define ROW(member, type, max, doc)                                                                \
	{                                                                                          \
#member, type, offsetof(struct quota_body, member), 0, max, FIELD_NULLABLE, doc    \
	}

static const struct field rows[] = {
	ROW(sandboxes, FIELD_INTEGER, INT32_MAX, "Sandboxes, in any state."),
	ROW(running, FIELD_INTEGER, INT32_MAX, "Sandboxes that run or are paused."),
	ROW(workspaces, FIELD_INTEGER, INT32_MAX,
		"Workspaces: of sandboxes, and those that deleted ones left."),
	ROW(cpu, FIELD_NUMBER, 1000000, "Cores of those that run."),
	ROW(memory, FIELD_SIZE, INT64_MAX, "Memory of those that run."),
	ROW(disk, FIELD_SIZE, INT64_MAX,
		"Disk of all, of the workspaces that deleted ones left, and of kept output."),
	ROW(images, FIELD_SIZE, INT64_MAX,
		"Files of images that were fetched, imported or built, until they are pruned."),
	ROW(projects, FIELD_SIZE, INT64_MAX, "Files of projects."),
	ROW(creates_per_minute, FIELD_INTEGER, INT32_MAX, "Sandboxes made in a minute."),
	{"dangerous_commands", FIELD_STRING, offsetof(struct quota_body, dangerous_commands), 0, 16,
		0,
		"What becomes of commands that look dangerous: they are flagged, must be "
		"confirmed, "
		"or are refused. Of user and organization, the stricter holds.",
		.choices = danger_policies},
};

const struct fields quotas_fields = FIELDS(rows);

/* --- who --- */

static int read_whom(const struct request *req, struct owner *ret_whom, struct err *err)
{
	const char *organization = request_param(req, "organization");
	const char *user = request_param(req, "user");

	if (!model_name_is_valid(organization) || (user && !model_name_is_valid(user)))
		return err_explain(err, ERR_NOT_FOUND, "owner_not_found", NULL,
			"that is no name of an organization or user");
	*ret_whom = (struct owner){0};
	snprintf(ret_whom->organization, sizeof(ret_whom->organization), "%s", organization);
	snprintf(ret_whom->user, sizeof(ret_whom->user), "%s", user ? user : "");
	return 0;
}

/* --- what --- */

static json_t *amount_to_json(enum quota_kind kind, int64_t amount)
{
	char text[QUOTA_TEXT_LEN];

	if (amount < 0)
		return json_null();
	if (kind == QUOTA_CPU)
		return json_real((double)amount / 1000);
	if (kind != QUOTA_MEMORY && kind != QUOTA_DISK && kind != QUOTA_IMAGES &&
		kind != QUOTA_PROJECTS)
		return json_integer(amount);
	quota_format(kind, (uint64_t)amount, text);
	return json_string(text);
}

static json_t *encode(const struct owner *whom, const struct quota_state *state)
{
	json_t *limits = json_object(), *used = json_object();

	for (int i = 0; i < QUOTA_KIND_COUNT; i++) {
		enum quota_kind kind = (enum quota_kind)i;

		json_object_set_new(
			limits, quota_name(kind), amount_to_json(kind, state->limits.limits[kind]));
		json_object_set_new(used, quota_name(kind),
			amount_to_json(kind, (int64_t)state->used.of[kind]));
	}
	return json_pack("{s:s, s:o, s:b, s:o, s:o, s:s}", "organization", whom->organization,
		"user", whom->user[0] ? json_string(whom->user) : json_null(), "is_set",
		state->is_set, "limits", limits, "used", used, "dangerous_commands",
		danger_policy_name((enum danger_policy)state->limits.danger));
}

static int look_up(struct api *api, const struct owner *whom, json_t **ret_quota, struct err *err)
{
	struct quota_state state;
	int r = store_quota_get(engine_store(api->engine), whom, &state, err);

	if (r == 0)
		*ret_quota = encode(whom, &state);
	return r;
}

static int answer(struct request *req, struct api *api, const struct owner *whom, struct err *err)
{
	json_t *quota;
	int r = look_up(api, whom, &quota, err);

	if (r == 0)
		request_answer_json(req, 200, quota);
	return r;
}

HANDLER(quotas_own)
{
	struct api *api = context;
	struct owner user = api_owner(req), organization = user;
	json_t *of_organization = NULL, *of_user = NULL;
	int r = api_check_ready(api, err);

	memset(organization.user, 0, sizeof(organization.user));
	if (r == 0)
		r = look_up(api, &organization, &of_organization, err);
	if (r == 0)
		r = look_up(api, &user, &of_user, err);
	if (r == 0)
		request_answer_json(req, 200,
			list_page_whole("quotas", json_pack("[o, o]", of_organization, of_user)));
	else
		json_decref(of_organization);
	return r;
}

/* "acme/ann": the last owner of the page before. */
static int read_cursor(const struct request *req, struct owner *ret_after, struct err *err)
{
	const char *cursor = request_query(req, "cursor"), *slash;

	*ret_after = (struct owner){0};
	if (!cursor)
		return 0;
	slash = strchr(cursor, '/');
	if (!slash || (size_t)(slash - cursor) >= sizeof(ret_after->organization) ||
		strlen(slash + 1) >= sizeof(ret_after->user))
		return err_set(err, ERR_INVALID, "cursor is not next_cursor of a page of owners");
	snprintf(ret_after->organization, sizeof(ret_after->organization), "%.*s",
		(int)(slash - cursor), cursor);
	snprintf(ret_after->user, sizeof(ret_after->user), "%s", slash + 1);
	return 0;
}

/* Fills a page from an owner on, who is the last of it then. */
static int add_owners(struct api *api, struct list_page *page, struct owner *last, struct err *err)
{
	struct owner owners[STORE_QUOTA_OWNERS_MAX];
	struct owner after = *last;
	int count;

	do {
		count = store_quota_owners(engine_store(api->engine), &after, owners, err);
		for (int i = 0; i < count; i++) {
			json_t *quota;
			int r = look_up(api, &owners[i], &quota, err);

			if (r < 0)
				return r;
			if (!list_page_add(page, quota))
				return 0;
			*last = after = owners[i];
		}
	} while (count == STORE_QUOTA_OWNERS_MAX);
	return count < 0 ? count : 0;
}

HANDLER(quotas_owners)
{
	struct api *api = context;
	struct list_page page;
	struct owner last;
	uint64_t limit;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_cursor(req, &last, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0)
		return r;
	list_page_init(&page, limit);
	r = add_owners(api, &page, &last, err);
	if (r == 0)
		list_page_answer(
			&page, req, "owners", json_sprintf("%s/%s", last.organization, last.user));
	list_page_fini(&page);
	return r;
}

HANDLER(quotas_get)
{
	struct owner whom;
	int r;

	if ((r = api_check_ready(context, err)) < 0 || (r = read_whom(req, &whom, err)) < 0)
		return r;
	return answer(req, context, &whom, err);
}

static int64_t limit_of(int64_t value)
{
	if (value == FIELD_ABSENT)
		return QUOTA_UNSET;
	return value == FIELD_NULL ? QUOTA_UNLIMITED : value;
}

static int decode(const struct request *req, struct quota *ret_quota, struct err *err)
{
	struct quota_body body;
	int r;

	fields_clear(&quotas_fields, &body);
	r = fields_decode(&quotas_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	ret_quota->danger = QUOTA_UNSET;
	if (body.dangerous_commands) {
		enum danger_policy policy;

		r = danger_policy_parse(body.dangerous_commands, &policy);
		if (r < 0)
			return err_from(err, r, "read a policy"); /* the choices were checked */
		ret_quota->danger = policy;
	}
	ret_quota->limits[QUOTA_SANDBOXES] = limit_of(body.sandboxes);
	ret_quota->limits[QUOTA_RUNNING] = limit_of(body.running);
	ret_quota->limits[QUOTA_WORKSPACES] = limit_of(body.workspaces);
	ret_quota->limits[QUOTA_MEMORY] = limit_of(body.memory);
	ret_quota->limits[QUOTA_DISK] = limit_of(body.disk);
	ret_quota->limits[QUOTA_IMAGES] = limit_of(body.images);
	ret_quota->limits[QUOTA_PROJECTS] = limit_of(body.projects);
	ret_quota->limits[QUOTA_CREATES] = limit_of(body.creates_per_minute);
	ret_quota->limits[QUOTA_CPU] = QUOTA_UNSET;
	if (!isnan(body.cpu))
		ret_quota->limits[QUOTA_CPU] = llround(body.cpu * 1000);
	else if (json_is_null(json_object_get(request_body(req), "cpu")))
		ret_quota->limits[QUOTA_CPU] = QUOTA_UNLIMITED;
	return 0;
}

/* For the audit log: "acme" or "acme/ann". */
static void note_whom(struct request *req, const struct owner *whom)
{
	char text[2 * MODEL_NAME_MAX];

	snprintf(text, sizeof(text), "%s%s%s", whom->organization, whom->user[0] ? "/" : "",
		whom->user);
	request_set_detail(req, text);
}

HANDLER(quotas_put)
{
	struct api *api = context;
	struct quota quota;
	struct owner whom;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_whom(req, &whom, err)) < 0 ||
		(r = decode(req, &quota, err)) < 0)
		return r;
	note_whom(req, &whom);
	r = store_quota_put(engine_store(api->engine), &whom, &quota, err);
	return r < 0 ? r : answer(req, api, &whom, err);
}

HANDLER(quotas_delete)
{
	struct api *api = context;
	struct owner whom;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_whom(req, &whom, err)) < 0)
		return r;
	note_whom(req, &whom);
	r = store_quota_delete(engine_store(api->engine), &whom, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}
