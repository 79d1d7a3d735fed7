/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors of registries, from the setting --registry-mirror: "[REGISTRY=]HOST[/PREFIX],...". An entry without a
 * registry is for the one of names that have none. They are asked before the registry itself, in this
 * order. What they send is checked as always, so a mirror that lies costs time and nothing else.
 */
#pragma once

#include "image/image_reference.h"

struct registry_mirror {
	char host[IMAGE_REGISTRY_MAX + 1];
	char prefix[IMAGE_REPOSITORY_MAX + 1]; /* of its repositories; may be empty */
};

/* Whether every entry of the setting is of that form. */
int registry_mirror_check(const char *setting, struct err *err) must_check;

/* The mirror of that number, from 0 on, of a registry; false if there are not so many. */
bool registry_mirror_get(const char *setting, const char *default_registry, const char *registry,
	unsigned number, struct registry_mirror *ret_mirror);

/* Whether a host is a mirror of anything. */
bool registry_mirror_is(const char *setting, const char *host);

/* What a mirror has in the place of an image. -EMSGSIZE if its name would be too long. */
int registry_mirror_translate(const struct registry_mirror *mirror,
	const struct image_reference *reference, struct image_reference *ret_reference) must_check;
