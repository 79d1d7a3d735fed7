/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work/execution_record.h"

#include <errno.h>
#include <string.h>

static const char *const names[EXECUTION_STATUS_COUNT] = {
	[EXECUTION_RUNNING] = "running",
	[EXECUTION_QUEUED] = "queued",
	[EXECUTION_SUCCEEDED] = "succeeded",
	[EXECUTION_FAILED] = "failed",
	[EXECUTION_TIMEOUT] = "timeout",
	[EXECUTION_CANCELLED] = "cancelled",
	[EXECUTION_LOST] = "lost",
};

void execution_record_fini(struct execution_record *record)
{
	json_decref(take_ptr(&record->request));
	json_decref(take_ptr(&record->outcome));
}

void execution_record_copy(struct execution_record *to, const struct execution_record *from)
{
	*to = *from;
	json_incref(to->request);
	json_incref(to->outcome);
}

const char *execution_status_name(enum execution_status status)
{
	return names[status];
}

int execution_status_parse(const char *name, enum execution_status *ret_status)
{
	for (size_t i = 0; i < EXECUTION_STATUS_COUNT; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_status = (enum execution_status)i;
			return 0;
		}
	}
	return -EINVAL;
}

int execution_not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "execution_not_found",
		"an execution that ended is kept for a time only (--execution-keep, "
		"--execution-history)",
		"there is no execution %s", id);
}
