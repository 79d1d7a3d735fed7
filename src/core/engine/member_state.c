/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/member_state.h"

#include "base/clock.h"

#include <string.h>

#define HURRY_MS 5000

const json_t *member_state_policy(const struct sandbox_record *record)
{
	json_t *entry;
	size_t i;

	json_array_foreach(record->members, i, entry)
	{
		const char *id = json_string_value(json_object_get(entry, "id"));

		/* That of the primary has no id; a member has its own alone. */
		if (!id || !id[0] || strcmp(id, record->id) == 0)
			return entry;
	}
	return NULL;
}

const json_t *member_state_depends_on(const struct sandbox_record *record)
{
	const json_t *list = json_object_get(member_state_policy(record), "depends_on");

	return json_array_size(list) > 0 ? list : NULL;
}

void member_state_reset(struct sandbox *sandbox)
{
	const json_t *policy = member_state_policy(&sandbox->record);

	sandbox->member.is_held = member_state_depends_on(&sandbox->record) != NULL;
	sandbox->member.health = json_object_size(json_object_get(policy, "health")) > 0
					 ? MEMBER_HEALTH_STARTING
					 : MEMBER_HEALTH_NONE;
	sandbox->member.is_checking = false;
	sandbox->member.failures = 0;
	sandbox->member.next_check_ms = 0;
	sandbox->member.up_since_ms = clock_steady_ms();
	sandbox->member.run++;
	if (policy)
		atomic_store(&sandbox->engine->has_members, true);
}

void member_state_hurry(struct sandbox *sandbox)
{
	sandbox->member.next_check_ms = 0;
	sandbox->member.hurry_until_ms = clock_steady_ms() + HURRY_MS;
}

void member_state_wake_watch(struct engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	atomic_store(&engine->has_members, true);
	pthread_cond_broadcast(&engine->work);
	pthread_mutex_unlock(&engine->lock);
}
