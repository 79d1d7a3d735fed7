/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of an image as people write it: "python:3.12-slim", "registry.example:5000/team/app:1",
 * "name@sha256:...". A reference without a registry gets the default one, and a plain name there
 * gets the prefix that the registry has for names without an owner.
 *
 * The first part is a registry if it has a dot or a colon, or is "localhost"; only so a name with a
 * port ("host:5000/app") is told from a name with a tag ("app:5000").
 */
#pragma once

#include "blob/digest.h"

#define IMAGE_REGISTRY_MAX   255
#define IMAGE_REPOSITORY_MAX 255
#define IMAGE_TAG_MAX	     128
#define IMAGE_REFERENCE_MAX                                                                        \
	(IMAGE_REGISTRY_MAX + 1 + IMAGE_REPOSITORY_MAX + 1 + IMAGE_TAG_MAX + 1 + DIGEST_LEN)

struct image_reference {
	char registry[IMAGE_REGISTRY_MAX + 1];
	char repository[IMAGE_REPOSITORY_MAX + 1];
	char tag[IMAGE_TAG_MAX + 1]; /* empty if there is a digest and no tag */
	struct digest digest;	     /* empty text: by tag */
};

/* How short names are completed; from the settings. */
struct image_defaults {
	const char *registry; /* for names without one */
	const char *prefix;   /* before a name without "/" at that registry; may be empty */
};

/* ERR_INVALID says which part is wrong and what is allowed there. */
int image_reference_parse(const char *text, const struct image_defaults *defaults,
	struct image_reference *ret_reference, struct err *err) must_check;

/* The whole name with registry and tag or digest, as messages and rows have it. */
void image_reference_write(
	const struct image_reference *reference, char text[static IMAGE_REFERENCE_MAX + 1]);

/* What the registry is asked for: the digest, or else the tag. */
const char *image_reference_version(const struct image_reference *reference);

/* Whether a text can only be meant as an image: it has a "/", ":" or "@", which no template's name has. */
bool image_reference_is_explicit(const char *text);
