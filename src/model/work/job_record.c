/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work/job_record.h"

#include <errno.h>
#include <string.h>

static const char *const names[JOB_STATE_COUNT] = {
	"queued", "running", "succeeded", "failed", "cancelled", "lost"};

void job_record_init(struct job_record *record)
{
	*record = (struct job_record){.input = json_object(), .result = json_object()};
}

void job_record_fini(struct job_record *record)
{
	json_decref(record->input);
	json_decref(record->result);
	record->input = record->result = NULL;
}

void job_record_copy(struct job_record *to, const struct job_record *from)
{
	*to = *from;
	to->input = json_deep_copy(from->input);
	to->result = json_deep_copy(from->result);
}

const char *job_state_name(enum job_state state)
{
	return names[state];
}

int job_state_parse(const char *name, enum job_state *ret_state)
{
	for (int i = 0; i < JOB_STATE_COUNT; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_state = i;
			return 0;
		}
	}
	return -EINVAL;
}

int job_not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "job_not_found", "list them with GET /v1/jobs",
		"there is no job %.64s", id);
}
