/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing or slow on the host, as `sandlot doctor` says it there: for operators who are elsewhere. */
#include "api/handlers.h"
#include "doctor/host_report.h"

static const char *const status_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_WARN] = "warn",
	[FINDING_FAIL] = "fail",
};

HANDLER(doctor_report)
{
	const struct api *api = context;
	json_t *checks = json_array();
	bool is_ok = true;

	(void)err;
	for (size_t i = 0; i < host_check_count; i++) {
		struct finding f;

		host_report_get(api->host_report, i, &f);
		is_ok = is_ok && f.level != FINDING_FAIL;
		json_array_append_new(checks,
			json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "name", host_checks[i].name,
				"status", status_names[f.level], "fact", f.fact, "why", f.why,
				"mend", f.mend[0] ? f.mend : NULL));
	}
	request_answer_json(req, 200,
		json_pack("{s:b, s:o, s:o}", "ok", is_ok, "started_at",
			api_time_to_json(api->host_report->looked_ms), "checks", checks));
	return 0;
}
