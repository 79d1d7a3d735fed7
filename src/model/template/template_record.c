/* SPDX-License-Identifier: Apache-2.0 */
#include "model/template/template_record.h"

#include "model/work/job_record.h"

#include <string.h>

void template_record_init(struct template_record *record)
{
	*record = (struct template_record){
		.image = json_object(), .source = json_object(), .options = json_object()};
}

void template_record_fini(struct template_record *record)
{
	json_decref(record->image);
	json_decref(record->source);
	json_decref(record->options);
	record->image = record->source = record->options = NULL;
}

enum template_status template_status_of(int64_t version, const char *job_state)
{
	enum job_state state;

	if (!job_state[0] || job_state_parse(job_state, &state) < 0 || state == JOB_SUCCEEDED)
		return version > 0 ? TEMPLATE_READY : TEMPLATE_ERROR;
	return job_state_is_active(state) ? TEMPLATE_BUILDING : TEMPLATE_ERROR;
}

const char *template_status_name(enum template_status status)
{
	static const char *const names[] = {
		[TEMPLATE_BUILDING] = "building",
		[TEMPLATE_READY] = "ready",
		[TEMPLATE_ERROR] = "error",
	};

	return names[status];
}

bool template_text_is_valid(const char *text)
{
	size_t len = strspn(
		text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@");

	return text[len] == '\0' && len >= 1 && len < SANDBOX_TEMPLATE_MAX && text[0] != '-';
}

bool template_name_is_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");

	return name[len] == '\0' && len >= 1 && len < TEMPLATE_NAME_MAX && name[0] >= 'a' &&
	       name[0] <= 'z';
}
