/* SPDX-License-Identifier: Apache-2.0 */
#include "api/list_page.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void list_page_init(struct list_page *page, uint64_t limit)
{
	*page = (struct list_page){.items = json_array(), .limit = limit};
}

void list_page_fini(struct list_page *page)
{
	json_decref(page->items);
	page->items = NULL;
}

bool list_page_add(struct list_page *page, json_t *item)
{
	size_t bytes = json_dumpb(item, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) + 1;
	size_t count = json_array_size(page->items);

	if (page->has_more || count == page->limit ||
		(count > 0 && bytes > LIST_PAGE_BYTES - page->bytes)) {
		page->has_more = true;
		json_decref(item);
		return false;
	}
	page->bytes = bytes < LIST_PAGE_BYTES - page->bytes ? page->bytes + bytes : LIST_PAGE_BYTES;
	json_array_append_new(page->items, item);
	return true;
}

void list_page_answer(struct list_page *page, struct request *req, const char *name, json_t *cursor)
{
	json_t *document = json_object();

	json_object_set(document, name, page->items);
	json_object_set(document, "next_cursor", page->has_more ? cursor : json_null());
	json_decref(cursor);
	request_answer_json(req, 200, document);
}

json_t *list_page_whole(const char *name, json_t *items)
{
	return json_pack("{s:o, s:n}", name, items, "next_cursor");
}

json_t *list_page_path_cursor(const char *path)
{
	size_t len = strlen(path);
	auto_free char *text = mem_new(len * 2 + 1);

	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)path[i]);
	return json_string(text);
}

int list_page_read_path(const struct request *req, char *path, size_t size, struct err *err)
{
	const char *text = request_query(req, "cursor");
	size_t len = text ? strlen(text) : 0;

	path[0] = '\0';
	if (len % 2 || len / 2 >= size || (text && strspn(text, "0123456789abcdef") != len))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter cursor must be the next_cursor of the page before");
	for (size_t i = 0; i < len / 2; i++) {
		char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

		path[i] = (char)strtoul(pair, NULL, 16);
		if (!path[i])
			return err_set(err, ERR_INVALID, "parameter cursor is malformed");
	}
	path[len / 2] = '\0';
	return 0;
}
