/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as the source of a template: what its sandbox had changed of the system becomes a layer
 * on the layers that the sandbox was started from. The workspace is in that layer too, as the
 * directory TEMPLATE_SNAPSHOT_SKELETON, since the workspace of a sandbox is no part of its system.
 */
#pragma once

#include "core/template/build/template_build.h"
#include "model/access/caller.h"

#define TEMPLATE_SNAPSHOT_SKELETON "opt/sandbox-skel"

/* As the functions of struct template_source (template_source.h). One of a sandbox of the host's files is refused. */
int template_snapshot_check(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err) must_check;
int template_snapshot_make(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err) must_check;
