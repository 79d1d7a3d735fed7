/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see a preview: anybody if its port is public; else whoever shows a token of its owner in a header, or the
 * cookie of a link for that port. Who may not learns nothing of it, not even whether it is there.
 */
#pragma once

#include "api/api.h"
#include "api/preview_goal.h"
#include "model/sandbox_port.h"

/*
 * Whether a visit may see a port of a sandbox (both NULL if there is none such). If so, the way says what opened it; if
 * not, or if it opens a link, the way is the answer.
 */
bool preview_entry_check(struct api *api, const struct proxy_visit *visit,
	const struct preview_goal *goal, const struct sandbox_record *record,
	const struct sandbox_port *port, struct proxy_way *way) must_check;

/* Whether what opened a way opens it still. */
bool preview_entry_is_open(
	struct api *api, const struct sandbox_port *port, const struct proxy_way *way) must_check;
