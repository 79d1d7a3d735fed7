/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process_record.h"

#include "base/number.h"

#include <stdio.h>

void process_record_init(struct process_record *record)
{
	*record = (struct process_record){.argv = json_array(), .cwd = mem_strdup("")};
}

void process_record_fini(struct process_record *record)
{
	json_decref(record->argv);
	free(record->cwd);
	record->argv = NULL;
	record->cwd = NULL;
}

void process_record_copy(struct process_record *to, const struct process_record *from)
{
	*to = *from;
	to->argv = json_deep_copy(from->argv);
	to->cwd = mem_strdup(from->cwd);
}

uint32_t process_name_parse(const char *name)
{
	uint64_t number;

	if (name[0] != 'p' || number_parse(name + 1, 1, UINT32_MAX, &number) < 0)
		return 0;
	return (uint32_t)number;
}

void process_name_format(uint32_t number, char name[PROCESS_NAME_MAX])
{
	snprintf(name, PROCESS_NAME_MAX, "p%u", number);
}

int process_not_found(const char *name, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "process_not_found",
		"list them with GET /v1/sandboxes/{id}/processes", "the sandbox has no process %s",
		name);
}

int process_has_ended(uint32_t number, struct err *err)
{
	return err_explain(
		err, ERR_CONFLICT, "process_ended", NULL, "process p%u has ended", number);
}
