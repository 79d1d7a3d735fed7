/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages of apps as layers that launches share (core/dependency/dependency_layer.h): what package-lock.json or
 * requirements.txt names was installed by an earlier launch of the same owner on the same template, so it is copied from
 * the layer instead of being installed again. The copy is the sandbox's own.
 *
 * A layer is made after the launch that missed it, in a builder, from the two files alone. So nothing that runs in a
 * sandbox can get into what other sandboxes are given, and the first launch does not wait for it.
 */
#pragma once

#include "launch/stage/pipeline.h"

struct package_layer {
	char *texts[DEPENDENCY_FILES]; /* files that name the packages; owned, NULL: none */
	const char *reason;	       /* why no layer can hold them; NULL: one can */
};

void package_layer_read(
	const struct file_set *files, const struct app_part *part, struct package_layer *ret_layer);
void package_layer_fini(struct package_layer *layer);

/*
 * Shows the sandbox the layer, if there is one: the command, of the shell, that copies the packages into the
 * directory of the part and fails if it cannot. NULL: there is none.
 */
const char *package_layer_lend(struct pipeline *pipeline, const struct package_layer *layer);

/* Has layers made of what was installed anew. */
void package_layer_share(struct pipeline *pipeline);
