/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a request to a sandbox that runs, but on whose port nothing answers. */
#pragma once

#include "core/sandbox.h"
#include "proxy/proxy.h"

/*
 * Its app may still be starting: then a browser gets a page that looks again, and everybody else waits for
 * a while. Else the answer says what is wrong: the start command failed, ended or was ended, or it listens
 * elsewhere. why is the failure to connect.
 */
void preview_app_miss(struct sandbox *sandbox, const struct sandbox_record *record,
	const struct proxy_visit *visit, const struct err *why, struct proxy_way *way);
