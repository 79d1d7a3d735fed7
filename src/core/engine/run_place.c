/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/run_place.h"

#include "base/share_pool.h"
#include "model/access/owner.h"

#include <errno.h>

static int take(struct engine *engine, const struct owner *owner, struct share **ret_place)
{
	return share_pool_take(
		engine->running, owner_key(owner), owner_is_operator(owner), ret_place);
}

int run_place_take_for(
	struct engine *engine, const struct owner *owner, struct share **ret_place, struct err *err)
{
	int r = take(engine, owner, ret_place);

	if (r == -EDQUOT)
		return err_explain(err, ERR_RATE, "too_many_running",
			"stop sandboxes that you do not need now",
			"as many of your sandboxes run as one owner may have running");
	if (r < 0)
		return err_explain(err, ERR_UNAVAILABLE, "too_many_running",
			"try again later; the operator can raise LimitNOFILE= of the service",
			"as many sandboxes run as there may be");
	return 0;
}

int run_place_take(struct sandbox *sandbox, struct err *err)
{
	return sandbox->place ? 0
			      : run_place_take_for(sandbox->engine, &sandbox->record.owner,
					&sandbox->place, err);
}

void run_place_adopt(struct sandbox *sandbox)
{
	if (!sandbox->place)
		(void)!take(sandbox->engine, &sandbox->record.owner, &sandbox->place);
}

void run_place_give_back(struct sandbox *sandbox)
{
	share_give_back(take_ptr(&sandbox->place));
}
