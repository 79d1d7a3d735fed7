/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work/function_record.h"

#include "base/mem.h"

void function_record_fini(struct function_record *record)
{
	json_decref(take_ptr(&record->spec));
}

int function_not_found(const char *name, uint32_t version, struct err *err)
{
	if (version > 0)
		return err_explain(err, ERR_NOT_FOUND, "function_not_found",
			"GET /v1/functions/{function}/versions lists those that are kept",
			"there is no version %u of a function %.80s", version, name);
	return err_explain(err, ERR_NOT_FOUND, "function_not_found",
		"put it with PUT /v1/functions/{function}, or sandlot fn deploy",
		"there is no function %.80s", name);
}
