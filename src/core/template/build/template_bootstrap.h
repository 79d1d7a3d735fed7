/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source "bootstrap": a Debian from its packages, without any image.
 *
 *   {"bootstrap": {"suite": "bookworm", "packages": ["git"]}}
 *
 * The host's mmdebstrap makes the first layer in a builder that has the host's files. It runs in its mode "chrootless",
 * which asks for nothing that the profile of sandboxes refuses: no mount, no chroot, no device. Further packages
 * are the second layer, installed by apt in a builder of the first.
 *
 * Packages come from the setting --apt-mirror, else from where the host has its own (apt_sources.h).
 */
#pragma once

#include "core/template/build/template_build.h"
#include "model/access/caller.h"

/* The row of template_source.c. */
int template_bootstrap_check(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err) must_check;
int template_bootstrap_make(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err) must_check;

/* A Debian of a suite, and nothing more. */
int template_bootstrap_suite(struct template_build *build, const char *suite,
	struct image_pulled *ret_pulled, struct err *err) must_check;
