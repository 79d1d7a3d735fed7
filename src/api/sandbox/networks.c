/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handlers.h"
#include "core/engine/sandbox_network.h"

static json_t *denials_to_json(const struct sandbox_network_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->denial_count; i++) {
		const struct egress_denial *denial = &report->denials[i];

		if (egress_denial_is_refusal(denial->reason))
			json_array_append_new(list,
				json_pack("{s:s, s:s, s:s*, s:I, s:o}", "target", denial->target,
					"reason", egress_denial_reason_name(denial->reason), "rule",
					denial->rule[0] ? denial->rule : NULL, "count",
					(json_int_t)denial->count, "at",
					api_time_to_json(denial->at_ms)));
	}
	return list;
}

static json_t *lookups_to_json(const struct sandbox_network_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->denial_count; i++) {
		const struct egress_denial *failed = &report->denials[i];

		if (!egress_denial_is_refusal(failed->reason))
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:I, s:o}", "name", failed->target,
					      "cause", egress_denial_reason_name(failed->reason),
					      "count", (json_int_t)failed->count, "at",
					      api_time_to_json(failed->at_ms)));
	}
	return list;
}

static json_t *reached_to_json(const struct sandbox_network_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->reached_count; i++)
		json_array_append_new(list, json_string(report->reached[i]));
	return list;
}

HANDLER(networks_get)
{
	struct sandbox_network_report report;
	struct sandbox_record record;
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	sandbox_network_read(sandbox, &report);
	request_answer_json(req, 200,
		json_pack("{s:O, s:b, s:I, s:I, s:I, s:i, s:I, s:o, s:o, s:o}", "policy",
			record.network, "transparent", report.is_transparent, "tx_bytes",
			(json_int_t)report.counters.tx_bytes, "rx_bytes",
			(json_int_t)report.counters.rx_bytes, "connections",
			(json_int_t)report.counters.connections, "open_connections",
			(int)report.counters.open_connections, "denied",
			(json_int_t)report.counters.denied, "reached", reached_to_json(&report),
			"denials", denials_to_json(&report), "failed_lookups",
			lookups_to_json(&report)));
	sandbox_network_report_fini(&report);
	sandbox_record_fini(&record);
	return 0;
}
