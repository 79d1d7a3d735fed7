/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids as people type them: a whole id is taken as it is. Anything else is looked up: it is the name of a
 * sandbox, or the beginning of exactly one id, or the end of exactly one.
 */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

#include <jansson.h>
#include <stdbool.h>

#define RESOLVE_ID_LEN 26

bool resolve_is_whole(const char *text);

/* Whether the daemon would accept it as a name, see sandbox_name_is_valid() there. */
bool resolve_is_name(const char *text);

/* Looks text up among sandboxes (a JSON array of objects with an id). */
int resolve_among(const json_t *sandboxes, const char *text, char ret_id[RESOLVE_ID_LEN + 1],
	struct err *err) must_check;

/* Asks the daemon if it must; a whole id needs no client. */
int resolve_id(struct client *client, const char *text, char ret_id[RESOLVE_ID_LEN + 1],
	struct err *err) must_check;

/* The same among what removed sandboxes left too; sandboxes that are there come first. */
int resolve_left(struct client *client, const char *text, char ret_id[RESOLVE_ID_LEN + 1],
	struct err *err) must_check;

/* The same, and then asks for what is at `tail` ("/ports", say, or "") below that sandbox. */
int resolve_get(struct client *client, const char *text, const char *tail, json_t **ret_document,
	struct err *err) must_check;
