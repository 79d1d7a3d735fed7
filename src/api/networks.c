/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handlers.h"
#include "api/text.h"
#include "core/network.h"

static json_t *denials_to_json(struct sluice *sluice)
{
	auto_free struct egress_denial *denials = mem_new(SLUICE_DENIALS_MAX * sizeof(*denials));
	size_t count = sluice_denials(sluice, denials);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct egress_denial *denial = &denials[i];

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s*, s:I, s:o}", "target", denial->target, "reason",
				egress_denial_reason_name(denial->reason), "rule",
				denial->rule[0] ? denial->rule : NULL, "count",
				(json_int_t)denial->count, "at", api_time_to_json(denial->at_ms)));
	}
	return list;
}

static json_t *contacts_to_json(struct sluice *sluice)
{
	auto_free char(*rules)[EGRESS_NAME_MAX + 8] = mem_new(SLUICE_CONTACTS_MAX * sizeof(*rules));
	size_t count = sluice_contacts(sluice, rules);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(rules[i]));
	return list;
}

HANDLER(networks_get)
{
	struct sluice_counters counters = {0};
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct sluice *sluice;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	sluice = network_sluice(sandbox);
	if (sluice)
		sluice_count(sluice, &counters);
	request_answer_json(req, 200,
		json_pack("{s:O, s:b, s:I, s:I, s:I, s:i, s:I, s:o, s:o}", "policy", record.network,
			"transparent", network_is_transparent(sandbox), "tx_bytes",
			(json_int_t)counters.tx_bytes, "rx_bytes", (json_int_t)counters.rx_bytes,
			"connections", (json_int_t)counters.connections, "open_connections",
			(int)counters.open_connections, "denied", (json_int_t)counters.denied,
			"reached", sluice ? contacts_to_json(sluice) : json_array(), "denials",
			sluice ? denials_to_json(sluice) : json_array()));
	sluice_unref(sluice);
	sandbox_record_fini(&record);
	return 0;
}
