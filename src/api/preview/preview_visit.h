/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a visit shows that it may see a preview (core/preview/preview_access.h): tokens in headers, links in the query
 * and in cookies; and what it is answered if it may not. Who may not see a preview learns nothing of it, not even
 * whether it is there.
 */
#pragma once

#include "api/api.h"
#include "api/preview/preview_target.h"

/*
 * The sandbox that `target` names. A name is looked up among those of the tokens that the visit shows, because only the
 * owner makes it mean one.
 */
int preview_visit_find(struct api *api, struct engine *engine, const struct proxy_visit *visit,
	const struct preview_target *target, struct sandbox **ret_sandbox) must_check;

/*
 * Fills in which sandbox and port a frame shows, and tells the way who may frame it. Nothing if the target is none, or
 * its link is gone.
 */
void preview_visit_find_frame(
	struct engine *engine, struct preview_target *target, struct proxy_way *way);

/*
 * Whether a visit may see the port that `target` names of a sandbox (NULL if there is none such). If so, the way says
 * what opened it; if not, or if it opens a link, the way is the answer.
 */
bool preview_visit_check(struct api *api, const struct proxy_visit *visit,
	const struct preview_target *target, const struct sandbox_record *record,
	struct proxy_way *way) must_check;

/* Whether what opened a way opens it still. */
bool preview_visit_is_open(struct engine *engine, const struct sandbox_record *record,
	const struct proxy_way *way) must_check;
