/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/danger_answer.h"

int danger_answer_ask(struct request *req, struct api *api, const struct danger_question *question,
	danger_set *ret_flags, struct err *err)
{
	struct danger_verdict verdict = {0};
	char names[DANGER_NAMES_MAX];
	int r = danger_gate_ask(api->engine, question, &verdict, err);

	danger_names(verdict.flags, names);
	if (verdict.flags)
		request_answer_header(req, "Sandlot-Flags", names);
	if (verdict.code[0])
		request_answer_header(req, "Sandlot-Confirm", verdict.code);
	if (r == 0)
		*ret_flags = verdict.flags;
	return r;
}

int danger_answer_ask_in(struct request *req, struct api *api, struct sandbox *sandbox,
	struct danger_question question, danger_set *ret_flags, struct err *err)
{
	struct sandbox_record record;
	int r;

	sandbox_read(sandbox, &record);
	question.owner = &record.owner;
	question.sandbox = record.parent[0] ? record.parent : record.id;
	r = danger_answer_ask(req, api, &question, ret_flags, err);
	sandbox_record_fini(&record);
	return r;
}
