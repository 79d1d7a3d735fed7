/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names with values, and lists of texts, as a caller gives them. Everything is borrowed. A map or list
 * whose array is NULL was not given, which is not the same as one that is empty.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct text_pair {
	const char *name, *value;
};

struct text_map {
	const struct text_pair *pairs;
	size_t count;
};

struct text_list {
	const char *const *texts;
	size_t count;
};

/* As records keep them: a new object, or array, with copies. One that was not given is empty. */
json_t *text_map_to_json(struct text_map map);
json_t *text_list_to_json(struct text_list list);
