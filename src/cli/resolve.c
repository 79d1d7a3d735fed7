/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resolve.h"

#include "base/buf.h"
#include "cli/listing.h"

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

static int ambiguous(const char *text, const struct buf *candidates, size_t count, struct err *err)
{
	return err_explain(err, ERR_INVALID, "ambiguous_id", "type more of the id",
		"\"%s\" is the beginning of %zu ids: %.*s%s", text, count, (int)candidates->len,
		(const char *)candidates->data, count > CANDIDATES_MAX ? ", ..." : "");
}

int resolve_among(
	const json_t *sandboxes, const char *text, char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	auto_(buf_fini) struct buf candidates = BUF_INIT(1024);
	const char *found = NULL;
	size_t count = 0;
	size_t i;
	const json_t *sandbox;

	json_array_foreach(sandboxes, i, sandbox)
	{
		const char *id = json_string_value(json_object_get(sandbox, "id"));

		/* What is not an id must not get into the path of a request. */
		if (!id || !resolve_is_whole(id) || strncmp(id, text, strlen(text)) != 0)
			continue;
		found = id;
		if (count++ < CANDIDATES_MAX)
			buf_printf(&candidates, "%s%s", candidates.len ? ", " : "", id);
	}
	if (count == 0)
		return err_explain(err, ERR_NOT_FOUND, "sandbox_not_found",
			"\"sandlot ls\" shows those there are",
			"there is no sandbox whose id begins with \"%s\"", text);
	if (count > 1)
		return ambiguous(text, &candidates, count, err);
	snprintf(ret_id, RESOLVE_ID_LEN + 1, "%s", found);
	return 0;
}

int resolve_id(
	struct client *client, const char *text, char ret_id[RESOLVE_ID_LEN + 1], struct err *err)
{
	json_auto_t *sandboxes = NULL;
	int r;

	if (!is_id_text(text))
		return err_explain(err, ERR_INVALID, NULL,
			"an id has 26 digits and small letters; its beginning is enough",
			"\"%s\" is not the id of a sandbox", text);
	if (resolve_is_whole(text)) {
		memcpy(ret_id, text, RESOLVE_ID_LEN + 1);
		return 0;
	}
	r = listing_fetch(client, &(struct listing_filter){0}, &sandboxes, err);
	if (r < 0)
		return r;
	return resolve_among(sandboxes, text, ret_id, err);
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
