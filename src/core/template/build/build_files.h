/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files beside a Dockerfile that are too many for the request that has its text. They are sent before it, as a tar,
 * unpacked in a sandbox as any upload is, and kept as a layer, which the Dockerfile's source names by its digest. As other
 * layers it is its owner's, counts in the owner's quota of images, stays as long as a template names it, and goes
 * some time later (LAYER_USERS in store/db/sql.c).
 */
#pragma once

#include "core/files/tar_reader.h"
#include "core/template/build/template_build.h"
#include "model/access/caller.h"

#define BUILD_FILES_ROOT "/files" /* where a sandbox of that layer has them */

/* Keeps the files of a tar. `name` is that of the template, for the builder. */
int build_files_keep(struct engine *engine, const struct caller *caller, const char *name,
	const struct tar_reader_source *source, struct digest *ret_digest,
	struct tar_reader_result *ret_result, struct err *err) must_check;

/* The digest that a source (image/recipe.h) names, or NULL. */
const char *build_files_named_by(const json_t *source);

/* Whether an owner has files of that digest: 0, or ERR_INVALID. */
int build_files_check(const struct engine *engine, const struct owner *owner, const char *digest,
	struct err *err) must_check;

/* What a sandbox starts from that shows them; a new reference. */
int build_files_image(struct template_build *build, const char *digest, json_t **ret_image,
	struct err *err) must_check;
