/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What templates are made of: each kind of source is a row of a table. A source is kept in the template's
 * row as an object with one member, whose name is the kind: {"image": "python:3.12-slim"}.
 *
 * To add a kind: a row in template_source.c, a field of the same name in api/template/template_handlers.c.
 */
#pragma once

#include "core/template/build/template_build.h"
#include "model/access/caller.h"

struct template_source {
	const char *kind;
	/* Judges what a request says, before anything is done: ERR_INVALID, ERR_DENIED. NULL: no request
	 * can name this kind. */
	int (*check)(const struct engine *engine, const struct caller *caller, const json_t *value,
		struct err *err);
	/* Makes it, on the thread of the job. It may take long, looks at job_must_stop(build->job), and can be
	 * begun anew after any failure. NULL: it cannot be made again. */
	int (*make)(struct template_build *build, const json_t *value,
		struct image_pulled *ret_pulled, struct err *err);
	/* Whether it is the same whenever it is made; NULL: it may change. */
	bool (*is_fixed)(const json_t *value);
};

/* The kind of a source, and its value; NULL if there is no such kind. */
const struct template_source *template_source_of(const json_t *source, const json_t **ret_value);

/* Whether a request may ask for a template of this source: 0, or what is wrong with it. */
int template_source_check(const struct engine *engine, const struct caller *caller,
	const json_t *source, struct err *err) must_check;

/* Makes what a source says; template_build.make. */
int template_source_make(struct template_build *build, const json_t *source,
	struct image_pulled *ret_pulled, struct err *err) must_check;
