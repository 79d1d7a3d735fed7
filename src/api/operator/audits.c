/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the audit log. An organization reads what was done in its name; an administrator reads all,
 * and is the only one to verify the chain, which all organizations share.
 */
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/text.h"
#include "core/audit/audit_writer.h"
#include "core/engine/sandbox_handle.h"
#include "store/access/store_audit.h"

#include <stdio.h>

#define LIMIT_MAX     1000
#define LIMIT_DEFAULT 100
#define OBJECT_MAX    512

struct listing {
	struct list_page page;
	int64_t last;
};

static void set_text(json_t *object, const char *name, const char *value)
{
	text_set(object, name, (const uint8_t *)value, strlen(value));
}

static void set_optional(json_t *object, const char *name, const char *value)
{
	json_object_set_new(object, name, value[0] ? json_string(value) : json_null());
}

static json_t *encode(const struct audit_entry *entry, const uint8_t *hash)
{
	struct audit_mark mark = {.sequence = entry->sequence};
	char text[AUDIT_MARK_TEXT];
	json_t *object = json_pack("{s:I, s:o, s:s, s:i}", "sequence", (json_int_t)entry->sequence,
		"at", api_time_to_json(entry->at_ms), "action", entry->action, "status",
		entry->status);

	memcpy(mark.hash, hash, sizeof(mark.hash));
	audit_mark_format(&mark, text);
	set_optional(object, "organization", entry->owner.organization);
	set_optional(object, "user", entry->owner.user);
	set_optional(object, "token", entry->token_id);
	set_text(object, "object", entry->object);
	set_optional(object, "code", entry->code);
	set_optional(object, "from", entry->peer);
	set_optional(object, "request_id", entry->request_id);
	set_text(object, "detail", entry->detail);
	json_object_set_new(object, "hash", json_string(strchr(text, ':') + 1));
	return object;
}

static void add_entry(const struct audit_entry *entry, const uint8_t *hash, void *arg)
{
	struct listing *listing = arg;

	if (list_page_add(&listing->page, encode(entry, hash)))
		listing->last = entry->sequence;
}

static json_t *cursor(const struct listing *listing)
{
	return json_sprintf("%lld", (long long)listing->last);
}

/* The log names sandboxes by id: where the parameter has the name of the reader's sandbox, its id, also before "/p3". */
static const char *read_object(const struct request *req, struct api *api, char object[OBJECT_MAX])
{
	const char *text = request_query(req, "object");
	size_t len = text ? strcspn(text, "/") : 0;
	struct owner owner = api_owner(req);
	char name[SANDBOX_NAME_MAX];
	struct sandbox *sandbox;
	struct err err;

	if (!text || len >= sizeof(name))
		return text;
	memcpy(name, text, len);
	name[len] = '\0';
	/* Other objects than sandboxes have names too. */
	if (!sandbox_name_is_valid(name) ||
		sandbox_get(api->engine, &owner, name, &sandbox, &err) < 0)
		return text;
	snprintf(object, OBJECT_MAX, "%s%s", sandbox_id(sandbox), text + len);
	sandbox_unref(sandbox);
	return object;
}

HANDLER(audits_list)
{
	struct api *api = context;
	const struct principal *principal = request_principal(req);
	const char *organization = request_query(req, "organization");
	struct store_audit_filter filter = {.organization = organization,
		.user = request_query(req, "user"),
		.action = request_query(req, "action")};
	char object[OBJECT_MAX];
	struct listing listing = {0};
	uint64_t limit, before;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = api_query_number(req, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT, &limit, err)) <
			0 ||
		(r = api_query_number(req, "cursor", 1, INT64_MAX, INT64_MAX, &before, err)) < 0)
		return r;
	if (!scope_allows(principal->scopes, SCOPE_ADMIN)) {
		if (organization && strcmp(organization, principal->organization) != 0)
			return err_set(err, ERR_DENIED,
				"only an administrator may read the log of another organization");
		filter.organization = principal->organization;
	}
	list_page_init(&listing.page, limit);
	filter.object = read_object(req, api, object);
	filter.before = (int64_t)before;
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	audit_writer_flush(api->audit_writer);
	r = store_audit_list(engine_store(api->engine), &filter, add_entry, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "entries", cursor(&listing));
	list_page_fini(&listing.page);
	return r;
}

/* --- verifying --- */

static const char *const flaws[] = {
	[AUDIT_CHANGED] = "changed",
	[AUDIT_MISSING] = "missing",
	[AUDIT_CUT] = "cut",
	[AUDIT_REWRITTEN] = "rewritten",
};

static json_t *encode_mark(const struct audit_mark *mark)
{
	char text[AUDIT_MARK_TEXT];

	audit_mark_format(mark, text);
	return json_string(text);
}

HANDLER(audits_verify)
{
	struct api *api = context;
	const char *head = request_query(req, "head");
	struct audit_report report;
	struct audit_mark known;
	json_t *flaw;
	int r;

	if (head && audit_mark_parse(head, &known) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter head must be the head of an earlier verification");
	r = api_check_ready(api, err);
	if (r < 0)
		return r;
	audit_writer_flush(api->audit_writer);
	r = store_audit_verify(engine_store(api->engine), head ? &known : NULL, &report, err);
	if (r < 0)
		return r;
	flaw = report.flaw == AUDIT_WHOLE ? json_null()
					  : json_pack("{s:s, s:I}", "kind", flaws[report.flaw],
						    "sequence", (json_int_t)report.bad);
	request_answer_json(req, 200,
		json_pack("{s:b, s:I, s:o, s:o, s:o}", "ok", report.flaw == AUDIT_WHOLE, "entries",
			(json_int_t)report.count, "anchor", encode_mark(&report.anchor), "head",
			encode_mark(&report.head), "flaw", flaw));
	return 0;
}
