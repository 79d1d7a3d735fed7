/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pools there are to be, and how large: those of the templates with a `pool`, and those of the templates that
 * need no image, which the operator sets.
 *
 * Each has a stamp: a digest of all that its sandboxes depend on, which are the program of the daemon, the settings
 * that they are made with, the template with its version, and the members with theirs. A sandbox of another stamp is never given away.
 */
#pragma once

#include "core/engine/engine.h"
#include "store/sandbox/store_pool.h"

struct pool_plan {
	struct owner owner; /* of the template; both empty: everybody's */
	char template_name[SANDBOX_TEMPLATE_MAX];
	char stamp[STORE_POOL_STAMP_LEN + 1];
	unsigned size; /* how many are to wait */
	unsigned
		asked; /* how many its template asks for, which may be more than there is room for */
};

/* What the setting `pool` says: "host=4,browser=2". 0, or ERR_INVALID. */
int pool_plan_check(const char *setting, struct err *err) must_check;

/*
 * All of them, in an array that the caller frees. Together they have no more than the operator allows
 * (engine_config.pool_max), and those of an owner a quarter of that; the operator's own may have all.
 */
int pool_plan_read(struct engine *engine, struct pool_plan **ret_plans, size_t *ret_count,
	struct err *err) must_check;

#define POOL_PLAN_TEXT 256
/* Why fewer are to wait than its template asks for; empty if that is not so. */
void pool_plan_explain(
	const struct engine *engine, const struct pool_plan *plan, char ret_text[POOL_PLAN_TEXT]);

/* What sandboxes take of the template of a plan now; a new reference. */
int pool_plan_image(struct engine *engine, const struct pool_plan *plan, json_t **ret_image,
	struct err *err) must_check;

/* The draft of a sandbox that is to wait for a create, and takes this of the template; its stamp may be another by now. */
int pool_plan_draft(struct engine *engine, const struct pool_plan *plan, const json_t *image,
	struct sandbox_record *ret_draft, char ret_stamp[STORE_POOL_STAMP_LEN + 1], struct err *err)
	must_check;

/* The stamp of sandboxes like this draft, of a template of that owner. */
void pool_plan_stamp(const struct engine *engine, const struct owner *owner,
	const struct sandbox_record *draft, char ret_stamp[STORE_POOL_STAMP_LEN + 1]);
