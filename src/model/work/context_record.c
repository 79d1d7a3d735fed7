/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work/context_record.h"

void context_record_fini(struct context_record *record)
{
	json_decref(take_ptr(&record->env));
}

void context_record_copy(struct context_record *to, const struct context_record *from)
{
	*to = *from;
	json_incref(to->env); /* nobody changes it */
}

int context_not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "context_not_found",
		"list those of the sandbox with GET /v1/sandboxes/{id}/contexts",
		"there is no context %s in this sandbox", id);
}
