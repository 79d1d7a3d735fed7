/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of a template while it is built: those so far, and the next one, which is what a builder
 * (core/template/build/build_sandbox.h) has changed. A layer is kept under a key that names all that went into it, so that
 * the same owner's next build with the same key takes it instead of making it.
 */
#pragma once

#include "core/template/build/build_sandbox.h"
#include "core/template/build/template_build.h"

struct build_layers {
	struct template_build *build;
	struct image_pull pull;
	struct image_pulled so_far; /* empty at first: no layer, no stack */
};

/* With what there is already: base's content is taken over. */
void build_layers_init(
	struct build_layers *layers, struct template_build *build, struct image_pulled *base);
/* An image without files. */
int build_layers_begin_with_nothing(
	struct template_build *build, struct image_pulled *ret_base, struct err *err) must_check;
void build_layers_fini(struct build_layers *layers);

/* Puts the layer of an earlier build on top, if it is still there. */
bool build_layers_take(struct build_layers *layers, const char *key);

/*
 * Stops the builder and puts what it has changed on top: all of its system, or what is below a directory (relative,
 * plain) as if that were the root.
 */
int build_layers_add(struct build_layers *layers, struct build_sandbox *box, const char *below,
	const char *key, struct err *err) must_check;

/* Writes `stack` and `layers` of an image (template_build_to_image()) as they are now. */
void build_layers_show(const struct build_layers *layers, json_t *image);
