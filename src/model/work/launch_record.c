/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work/launch_record.h"

#include <errno.h>
#include <string.h>

static const char *const names[LAUNCH_STATUS_COUNT] = {
	"running", "succeeded", "failed", "cancelled"};

void launch_record_fini(struct launch_record *record)
{
	json_decref(record->document);
	record->document = NULL;
}

const char *launch_status_name(enum launch_status status)
{
	return names[status];
}

int launch_status_parse(const char *name, enum launch_status *ret_status)
{
	for (int i = 0; i < LAUNCH_STATUS_COUNT; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_status = i;
			return 0;
		}
	}
	return -EINVAL;
}

int launch_not_found(const char *id, struct err *err)
{
	return err_explain(
		err, ERR_NOT_FOUND, "launch_not_found", NULL, "there is no launch %.64s", id);
}
