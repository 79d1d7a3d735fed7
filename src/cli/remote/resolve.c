/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/resolve.h"

#include "base/buf.h"
#include "cli/remote/listing.h"

#include <stdio.h>
#include <string.h>

#define CANDIDATES_MAX 5

static bool is_id_text(const char *text)
{
	size_t len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz");

	return len > 0 && len <= RESOLVE_ID_LEN && !text[len];
}

bool resolve_is_whole(const char *text)
{
	return strlen(text) == RESOLVE_ID_LEN && is_id_text(text);
}

bool resolve_is_name(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return text[0] >= 'a' && text[0] <= 'z' && len <= 40 && !text[len] &&
	       !resolve_is_whole(text);
}

static bool is_named(const json_t *sandbox, const char *id, const char *text)
{
	const char *name = json_string_value(json_object_get(sandbox, "name"));

	(void)id;
	return name && strcmp(name, text) == 0;
}

static bool begins_with(const json_t *sandbox, const char *id, const char *text)
{
	(void)sandbox;
	return strncmp(id, text, strlen(text)) == 0;
}

/* Ids of sandboxes that were made one after the other begin alike, but end differently. */
static bool ends_with(const json_t *sandbox, const char *id, const char *text)
{
	(void)sandbox;
	return strlen(text) <= RESOLVE_ID_LEN &&
	       strcmp(id + RESOLVE_ID_LEN - strlen(text), text) == 0;
}

/* What a text may be, in the order in which it is tried. */
static const struct {
	bool (*fits)(const json_t *sandbox, const char *id, const char *text);
	const char *what;
} ways[] = {{is_named, "name"}, {begins_with, "beginning"}, {ends_with, "end"}};

/* 1: found; 0: none fits. */
static int pick(const json_t *sandboxes, const char *text, size_t way,
	char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	auto_(buf_fini) struct buf candidates = BUF_INIT(1024);
	const json_t *sandbox;
	size_t count = 0;
	size_t i;

	json_array_foreach(sandboxes, i, sandbox)
	{
		const char *id = json_string_value(json_object_get(sandbox, "id"));

		/* What is not an id must not get into the path of a request. */
		if (!id || !resolve_is_whole(id) || !ways[way].fits(sandbox, id, text))
			continue;
		if (count == 0)
			snprintf(ret_id, RESOLVE_ID_LEN + 1, "%s", id);
		if (count++ < CANDIDATES_MAX)
			buf_printf(&candidates, "%s%s", candidates.len ? ", " : "", id);
	}
	if (count > 1)
		return err_explain(err, ERR_INVALID, "ambiguous_id", "type more of the id",
			"\"%s\" is the %s of %zu ids: %.*s%s", text, ways[way].what, count,
			(int)candidates.len, (const char *)candidates.data,
			count > CANDIDATES_MAX ? ", ..." : "");
	return count == 1;
}

int resolve_among(
	const json_t *sandboxes, const char *text, char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];

	for (size_t way = 0; way < array_len(ways); way++) {
		int r = pick(sandboxes, text, way, id, err);

		if (r < 0)
			return r;
		if (r == 1) {
			memcpy(ret_id, id, sizeof(id));
			return 0;
		}
	}
	return err_explain(err, ERR_NOT_FOUND, "sandbox_not_found",
		"\"sandlot ls\" shows those there are",
		"there is no sandbox with the name \"%s\", nor one whose id begins or ends with it",
		text);
}

/* Of those that are there. */
static int resolve_present(
	struct client *client, const char *text, char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	json_auto_t *sandboxes = NULL;
	int r;

	if (!is_id_text(text) && !resolve_is_name(text))
		return err_explain(err, ERR_INVALID, NULL,
			"an id has 26 digits and small letters; its beginning or end is enough",
			"\"%s\" is neither the id nor the name of a sandbox", text);
	if (resolve_is_whole(text)) {
		memcpy(ret_id, text, RESOLVE_ID_LEN + 1);
		return 0;
	}
	r = listing_fetch(client, &(struct listing_filter){0}, &sandboxes, err);
	if (r < 0)
		return r;
	return resolve_among(sandboxes, text, ret_id, err);
}

static bool is_piece(const char *id, const char *text)
{
	size_t len = strlen(text);

	return len <= RESOLVE_ID_LEN &&
	       (strncmp(id, text, len) == 0 || strcmp(id + RESOLVE_ID_LEN - len, text) == 0);
}

static bool is_project_text(const char *text)
{
	return text[0] && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "0123456789._-")];
}

/* A project is often taken for its sandbox, above all after a launch, which makes both. */
static void tell_of_project(struct client *client, const char *text, struct err *err)
{
	json_auto_t *sandboxes = NULL;
	struct err ignored;
	const char *id;

	if (!is_project_text(text) ||
		listing_fetch(client, &(struct listing_filter){.project = text}, &sandboxes,
			&ignored) < 0)
		return;
	id = json_string_value(json_object_get(json_array_get(sandboxes, 0), "id"));
	if (json_array_size(sandboxes) == 1 && id)
		snprintf(err->remedy, sizeof(err->remedy), "the sandbox of the project %s is %s",
			text, id);
	else if (json_array_size(sandboxes) > 1)
		snprintf(err->remedy, sizeof(err->remedy),
			"\"sandlot ls --project %s\" shows the sandboxes of that project", text);
}

int resolve_id(
	struct client *client, const char *text, char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	json_auto_t *removed = NULL;
	struct err ignored;
	int r = resolve_present(client, text, ret_id, err);

	/* A piece of an id says less than the whole. */
	if (r == 0 && client)
		client_mean_sandbox(client, ret_id, is_piece(ret_id, text) ? "" : text);
	if (r < 0 && err->kind == ERR_NOT_FOUND && strcmp(err->code, "sandbox_not_found") == 0 &&
		listing_fetch_removed(client, &removed, &ignored) == 0 &&
		resolve_among(removed, text, ret_id, &ignored) == 0)
		return err_explain(err, ERR_NOT_FOUND, "sandbox_not_found",
			"\"sandlot ls --removed\" shows what it left",
			"the sandbox \"%s\" was removed", text);
	if (r < 0 && (err->kind == ERR_NOT_FOUND || err->kind == ERR_INVALID) && client)
		tell_of_project(client, text, err);
	return r;
}

int resolve_left(
	struct client *client, const char *text, char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	json_auto_t *removed = NULL;
	int r = resolve_present(client, text, ret_id, err);

	if (r == 0 || err->kind != ERR_NOT_FOUND)
		return r;
	r = listing_fetch_removed(client, &removed, err);
	return r < 0 ? r : resolve_among(removed, text, ret_id, err);
}

int resolve_get(struct client *client, const char *text, const char *tail, json_t **ret_document,
	struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	int r = resolve_id(client, text, id, err);

	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s%s", id, tail);
	return client_json(
		client, &(struct client_call){.method = "GET", .path = path}, ret_document, err);
}
