/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of projects, and projects and their files as JSON. */
#pragma once

#include "api/api.h"
#include "model/work/project_record.h"

extern const struct fields project_create_fields, project_patch_fields, project_move_fields;

/* What a body says; NULL: nothing. */
struct project_body {
	const char *name;     /* borrowed from the body */
	const json_t *labels; /* borrowed */
	json_t *defaults;     /* as the record keeps them; the caller's */
};

int project_body_decode(const struct fields *fields, const json_t *object,
	struct project_body *ret_body, struct err *err) must_check;

/* The new path of a file. */
int project_body_decode_move(const json_t *object, const char **ret_path, struct err *err)
	must_check;

json_t *project_to_json(const struct api *api, const struct project_record *record);
json_t *project_file_to_json(const struct api *api, const struct project_file *file);
