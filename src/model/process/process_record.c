/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process/process_record.h"

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

/* How much of a text fits: whole characters of UTF-8. */
static size_t fit(const char *text, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max > 0 && (text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

json_t *process_argv_shorten(const json_t *argv, size_t max, bool *ret_is_cut)
{
	json_t *shorter = json_array();
	bool is_cut = false;

	for (size_t i = 0; i < json_array_size(argv); i++) {
		const json_t *word = json_array_get(argv, i);
		size_t len = json_string_length(word), kept;

		/* Words may be empty: each counts at least one byte. */
		kept = fit(json_string_value(word), len, max);
		is_cut = kept < len || max == 0;
		if (max > 0)
			json_array_append_new(shorter, json_stringn(json_string_value(word), kept));
		if (is_cut)
			break;
		max -= kept < max ? kept + 1 : kept;
	}
	*ret_is_cut = is_cut;
	return shorter;
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
