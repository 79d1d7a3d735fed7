/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source "catalogue": a row of core/template/template_catalogue.h is fetched as an image, or made of Debian's packages
 * where no registry gives that image.
 */
#pragma once

#include "core/template/build/template_build.h"
#include "model/access/caller.h"

/* The row of template_source.c. */
int catalogue_build_check(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err) must_check;
int catalogue_build_make(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err) must_check;
