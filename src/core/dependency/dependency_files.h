/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that name packages (requirements.txt; package.json with package-lock.json). A set, and with it the record of a
 * sandbox and the key of a layer, has their digests; their texts are in the database, each owner's own
 * (store/template/store_dependency_file.h). The daemon never looks into them.
 */
#pragma once

#include "core/engine/engine.h"
#include "model/template/dependency_set.h"

/* A new set of all that is asked for. */
json_t *dependency_files_new_set(const struct dependency_spec *spec);

/* Keeps the texts, before a record names them. */
int dependency_files_keep(struct engine *engine, const struct owner *owner,
	const struct dependency_spec *spec, struct err *err) must_check;

/* The text of a file that a set has; the caller frees it. */
int dependency_files_load(struct engine *engine, const struct owner *owner, const json_t *set,
	enum dependency_file file, char **ret_text, size_t *ret_len, struct err *err) must_check;
