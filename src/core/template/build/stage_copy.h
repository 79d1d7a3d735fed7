/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that begin in another sandbox: COPY --from, and COPY and ADD of files that were sent before the build
 * (core/template/build/build_files.h). A helper there packs the files, one in the builder unpacks them; the daemon only
 * passes the items on, so both see the files of their own sandbox alone. What arrives is root's, as other copied
 * files are, without setuid bits and attributes.
 */
#pragma once

#include "blob/digest.h"
#include "core/template/build/build_sandbox.h"
#include "image/recipe.h"

struct stage_copy_source {
	struct build_sandbox *box;
	const char *root; /* names are below this directory; "" is / */
	const char *name; /* for errors: the stage, or what the files are called */
};

/*
 * Copies what the step names: of a directory what is in it, of a link what it leads to. Parts of a name may be
 * patterns. ERR_UNPROCESSABLE if there is nothing of that name.
 */
int stage_copy_run(const struct stage_copy_source *from, struct build_sandbox *to,
	const struct recipe_step *step, struct err *err) must_check;

/* Adds all that decides what the step copies but its own words: names, contents, modes and links, and no times. */
int stage_copy_hash(const struct stage_copy_source *from, const struct recipe_step *step,
	struct digest_stream *hash, struct err *err) must_check;
