/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of a list: at most so many items, and at most LIST_PAGE_BYTES of JSON, but always one item if there is any.
 * Whatever was left off for either reason is on the next page.
 */
#pragma once

#include "http/server/request/request.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define LIST_PAGE_BYTES (1u << 20)

struct list_page {
	json_t *items;
	uint64_t limit;
	size_t bytes;
	bool has_more; /* something did not fit */
};

void list_page_init(struct list_page *page, uint64_t limit);
void list_page_fini(struct list_page *page);

/* Takes over the item. False if it is not on this page; then none that follows may be either. */
bool list_page_add(struct list_page *page, json_t *item) must_check;

/* {"<name>":[...],"next_cursor":...}; takes over the cursor, which is used only if there is more. */
void list_page_answer(
	struct list_page *page, struct request *req, const char *name, json_t *cursor);

/* A list that is short enough to need no pages, in the same form; takes over the items. */
json_t *list_page_whole(const char *name, json_t *items) must_check;

/*
 * Cursors that are paths. They must survive JSON whatever bytes a name has: hexadecimal. The reader
 * gives "" if the request has none.
 */
json_t *list_page_path_cursor(const char *path);
int list_page_read_path(const struct request *req, char *path, size_t size, struct err *err)
	must_check;
