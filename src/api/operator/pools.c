/* SPDX-License-Identifier: Apache-2.0 */
/* Warm pools (core/pool/pool.h), for administrators. Their sizes are set with their templates. */
#include "api/handlers.h"
#include "core/pool/pool.h"

static json_t *to_json(const struct engine *engine, const struct pool_state *state)
{
	const struct pool_plan *plan = &state->plan;
	char no_room[POOL_PLAN_TEXT];
	const char *error = state->error;
	json_t *owner = plan->owner.organization[0]
				? json_pack("{s:s, s:s}", "organization", plan->owner.organization,
					  "user", plan->owner.user)
				: json_null();

	pool_plan_explain(engine, plan, no_room);
	if (!error[0])
		error = no_room;
	return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "template",
		plan->template_name, "owner", owner, "size", (json_int_t)plan->size, "ready",
		(json_int_t)state->ready, "warming", (json_int_t)state->warming, "hits",
		(json_int_t)state->hits, "misses", (json_int_t)state->misses, "error",
		error[0] ? json_string(error) : json_null());
}

HANDLER(pools_list)
{
	struct api *api = context;
	auto_free struct pool_state *states = NULL;
	struct pool_totals totals;
	json_t *list = json_array();
	size_t count;
	int r = api_check_ready(api, err);

	if (r == 0)
		r = pools_read_plans(api->engine, err);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	count = pools_read(api->engine, &states, &totals);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, to_json(api->engine, &states[i]));
	request_answer_json(req, 200,
		json_pack("{s:o, s:n, s:I, s:o}", "pools", list, "next_cursor", "draining",
			(json_int_t)totals.draining, "held_because",
			totals.held_because ? json_string(totals.held_because) : json_null()));
	return 0;
}
