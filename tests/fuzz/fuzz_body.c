/* SPDX-License-Identifier: Apache-2.0 */
/* JSON bodies, through the strict reader and the tables of what is served. */
#include "api/fields.h"
#include "api/handlers.h"
#include "api/process/command_body.h"
#include "api/sandbox/sandbox_body.h"
#include "http/server/request/body.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX 1024 /* the largest struct that a table describes is smaller */

static void check(const struct fields *fields, const json_t *object)
{
	uint8_t *body = mem_new(BODY_MAX);
	struct err err = {0};
	int r;

	for (size_t i = 0; i < fields->count; i++)
		assert(fields->rows[i].offset + 64 <= BODY_MAX);
	fields_clear(fields, body);
	r = fields_decode(fields, object, body, &err);
	if (r < 0) {
		assert(err.kind == ERR_INVALID && err.code[0] && err.message[0]);
		assert(memchr(err.message, '\0', sizeof(err.message)));
	} else {
		/* Everything that is there is known. */
		assert(json_object_size(object) <= fields->count);
	}
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {0};
	json_t *object = NULL;

	if (body_parse((const char *)data, size, &object, &err) < 0) {
		assert(err.kind == ERR_INVALID && !object);
		return 0;
	}
	assert(json_is_object(object));
	check(&sandbox_body_fields, object);
	check(&sandbox_patch_fields, object);
	check(&command_body_fields, object);
	check(&processes_stdin_fields, object);
	check(&processes_signal_fields, object);
	check(&processes_resize_fields, object);
	check(&files_mkdir_fields, object);
	check(&files_move_fields, object);
	json_decref(object);
	return 0;
}
