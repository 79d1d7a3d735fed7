/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of templates that everybody has without asking for them. Each is made when it is first used and is the
 * user's own template of that name from then on. A template of one's own goes before it.
 *
 * The table is catalogue.json, with a row for each:
 *   name            what creates say; with same_as another name of that row, and nothing else
 *   image           without a registry: the setting --registry says which
 *   suite           where the image cannot be had, a Debian of this suite is made instead (build/template_bootstrap.h) ...
 *   on_debian       ... and this recipe is put on it, with Node of the version node_on_debian from npm's registry
 *   program_on_debian  ... and this one of our programs, which it runs as the image would run its own
 *   shown_on_debian ... and what the image's config would say: ports, volumes
 *   instead         why there is no such way, and what there is: a row without a suite has this
 *   on_both         a recipe that is put on either
 *   health          a line for /bin/sh that exits with 0 when what either runs can be used
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

/* The names, a new array. */
json_t *template_catalogue_names(void);

/* The source of a name, {"catalogue": its row's name}, a new reference; NULL if it is none of these. */
json_t *template_catalogue_source(const char *name);

/* The image that a name stands for, a new text; NULL if it is none of these. */
char *template_catalogue_image(const char *name);

/* Its row, a new reference; NULL if it is none of these. */
json_t *template_catalogue_row(const char *name);

/* Whether it is the registry that does not give an image, and not this host that has no room for it, for one. */
bool template_catalogue_is_out_of_reach(const struct err *err);

/* If that is why an image could not be had, and a name stands for it, the remedy is to use that name. */
void template_catalogue_advise(const char *image, struct err *err);
