/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_ready.h"

#include "core/engine/sandbox_state.h"
#include "core/sandbox/member.h"

#include <string.h>

/* How far its members are: those that depend on others have been let go on, and all are healthy. */
static enum ready_state members_state(struct sandbox *sandbox)
{
	struct member_view views[MEMBERS_MAX];
	struct sandbox_record record;
	size_t count;

	sandbox_read(sandbox, &record);
	count = member_read_all(sandbox->engine, &record, views);
	sandbox_record_fini(&record);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(views[i].health, "unhealthy") == 0)
			return READY_GIVEN_UP;
		if (strcmp(views[i].health, "starting") == 0 ||
			strcmp(views[i].status, "waiting") == 0 ||
			strcmp(views[i].status, "stopped") == 0 ||
			strcmp(views[i].status, "error") == 0)
			return READY_NOT_YET;
	}
	return READY_YES;
}

static void read_mark(struct sandbox *sandbox, struct pool_mark *ret_mark)
{
	char ids[MEMBERS_MAX][ID_LEN + 1];
	size_t count = member_list_ids(sandbox, ids);
	struct pool_mark mark = {0};
	struct err ignored;

	start_command_add_up(sandbox, &mark.own);
	for (size_t i = 0; i < count; i++) {
		auto_(sandbox_unrefp) struct sandbox *member = NULL;

		if (sandbox_get(sandbox->engine, NULL, ids[i], &member, &ignored) == 0)
			start_command_add_up(member, &mark.of_members);
	}
	*ret_mark = mark;
}

enum ready_state pool_ready_state(struct sandbox *sandbox, struct pool_mark *ret_mark)
{
	enum ready_state state;

	/* First: what ends meanwhile is seen the next time. */
	read_mark(sandbox, ret_mark);
	state = ready_check_state(sandbox);
	return state == READY_YES ? members_state(sandbox) : state;
}

static bool has_failed(const struct start_command_sum *then, const struct start_command_sum *now)
{
	return now->failing > then->failing || now->restarts > then->restarts;
}

/*
 * What a sandbox runs itself may have come to its end, as a build does; what a member runs is a server.
 */
enum pool_verdict pool_ready_judge(
	struct sandbox *sandbox, struct pool_mark *mark, bool *ret_is_to_be_asked)
{
	enum ready_state state = ready_check_state(sandbox);
	struct pool_mark then = *mark;

	read_mark(sandbox, mark);
	*ret_is_to_be_asked = false;
	if (has_failed(&then.own, &mark->own) || has_failed(&then.of_members, &mark->of_members) ||
		mark->of_members.running < then.of_members.running || state == READY_GIVEN_UP ||
		members_state(sandbox) != READY_YES)
		return POOL_ILL;
	*ret_is_to_be_asked = mark->own.running < then.own.running && ready_check_has_rule(sandbox);
	return *ret_is_to_be_asked || state != READY_YES ? POOL_DOUBTFUL : POOL_WELL;
}
