/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: what sandboxes start from. `host` and `browser` need nothing; all others are images,
 * under a name that somebody gave them, or directly by their reference ("python:3.12-slim").
 *
 * An owner has templates of its own and sees the operator's. A sandbox keeps what it took of a
 * template (sandbox_record.image) until it is created anew or reset.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/template/template_options.h"
#include "image/image_archive.h"
#include "model/access/caller.h"
#include "model/template/template_record.h"

/*
 * Finds the template that a create means: 0, and what a sandbox takes of it; {} for host and browser. The name
 * may be the reference of an image. 1: it is not there yet, but will be when the job ret_job has succeeded,
 * which was begun now or before; the image has the defaults for sandboxes alone then. *ret_image is a new reference.
 */
int templates_resolve(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, char ret_job[ID_LEN + 1], struct err *err) must_check;

/* The same, but begins nothing: -ENOENT if it cannot be used now. */
int templates_look(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, struct err *err) must_check;

/* What a sandbox takes of the newest version; a new reference. */
json_t *templates_image_of(const struct template_record *record);

struct templates_request {
	const char *name;
	const json_t *source;		      /* template_source.h */
	const json_t *options;		      /* template_options.h, as they are kept; NULL: none */
	const struct template_options *asked; /* the same as they are asked for, to be checked */
	bool no_cache;
	bool is_shared; /* it is everybody's, which only the scope admin may ask for */
};

/*
 * Has a template built, as a job (template_build.h): a new one, or the next version of the owner's one of that
 * name. The same request joins the build under way; another one meanwhile is ERR_CONFLICT. If it is there
 * as it is asked for and cannot have changed, nothing is done. *ret_record is how it is then; the caller
 * ends it.
 */
int templates_ask(struct engine *engine, const struct caller *caller,
	const struct templates_request *request, struct template_record *ret_record,
	struct err *err) must_check;

/* The same of what it was made of before. */
int templates_rebuild(struct engine *engine, const struct caller *caller, const char *name,
	bool no_cache, struct template_record *ret_record, struct err *err) must_check;

/*
 * The template of a name that a caller may change: its own, else one that is everybody's, for the scope admin. ERR_DENIED
 * for others; ERR_NOT_FOUND. The caller ends the record.
 */
int templates_find_own(struct engine *engine, const struct caller *caller, const char *name,
	struct template_record *ret_record, struct err *err) must_check;

/* Changes the options of a template: that is its next version. ERR_CONFLICT while it is built. */
int templates_change(struct engine *engine, const struct caller *caller, const char *name,
	const struct template_options *options, struct template_record *ret_record, struct err *err)
	must_check;

/* Makes a template of an archive that is read now; `is_shared` as of a request. */
int templates_import(struct engine *engine, const struct caller *caller, const char *name,
	const struct image_source *source, const char *tag, bool is_shared,
	struct template_record *ret_record, struct err *err) must_check;

/* Whether there is a newer version of the template that a sandbox was made from; *ret_image (may be NULL) is what it would
 * take of that, a new reference. */
bool templates_is_upgradable(
	struct engine *engine, const struct sandbox_record *sandbox, json_t **ret_image);

/* Removes a template that no sandbox uses, and cancels its build. Its layers stay until nothing needs them. */
int templates_remove(struct engine *engine, const struct caller *caller, const char *name,
	struct err *err) must_check;

/* Asks for the end of a template's build. *ret_record is how it is then; the caller ends it. */
int templates_cancel_build(struct engine *engine, const struct caller *caller, const char *name,
	struct template_record *ret_record, struct err *err) must_check;
