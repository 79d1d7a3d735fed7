/* SPDX-License-Identifier: Apache-2.0 */
/* The body of create, ensure and PATCH, and a sandbox as JSON. */
#pragma once

#include "api/api.h"
#include "model/sandbox_record.h"
#include "wire/wall.h"

extern const struct fields sandbox_body_fields;
extern const struct fields sandbox_patch_fields;

/* Decodes a create body into a draft, whose owner is the request's. The caller ends the draft. */
int sandbox_body_decode(const struct api *api, const struct request *req,
	struct sandbox_record *ret_draft, struct err *err) must_check;

/* A checked PATCH body, and its application to a record. */
struct sandbox_patch {
	int64_t idle_timeout_s, lifetime_s;
	int64_t disk_bytes; /* or FIELD_ABSENT */
	const json_t *labels, *ports;
	enum field_boolean is_private;
	json_t *network; /* owned: the new network object, or NULL */
	json_t *start;	 /* owned: the new list of start commands, or NULL */
};

int sandbox_patch_decode(const struct api *api, const struct request *req,
	const char *template_name, struct sandbox_patch *ret_patch, struct err *err) must_check;
void sandbox_patch_apply(struct sandbox_record *record, void *patch);

json_t *sandbox_walls_to_json(const struct walls *walls);
json_t *sandbox_to_json(const struct api *api, const struct sandbox_record *record);

/* Checks of names in maps, shared with exec. NULL if fine. */
const char *sandbox_check_env(const json_t *env);
