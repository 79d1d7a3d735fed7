/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers with packages for sandboxes (model/template/dependency_set.h). One is made in a builder of the same template
 * (core/template/build/build_sandbox.h), by the template's own pip and npm, and noted in the cache of builds
 * (store/template/store_build.h) under what went into it: the template's files, the packages, mirrors and settings. So
 * the same owner's next sandbox that asks for the same gets the same layer. Nobody else does: another
 * owner may have other mirrors, and install scripts of packages run as they please.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/job/job.h"
#include "core/process/environment.h"
#include "store/template/store_build.h"

#define DEPENDENCY_KEY_LEN 64

/* Names the files that packages are made for: the template's, or the host's as far as pip and npm see them. */
void dependency_layer_base(
	const struct sandbox_record *sandbox, char ret_base[DEPENDENCY_KEY_LEN + 1]);

/* The name that a layer of a set has in the cache of its owner. */
void dependency_layer_key(const struct engine *engine, const struct sandbox_record *sandbox,
	const json_t *set, char ret_key[DEPENDENCY_KEY_LEN + 1]);

/*
 * The layer of a set, if the sandbox's owner has made one before; ERR_NOT_FOUND. Its note says what is
 * installed, and the caller ends that.
 */
int dependency_layer_find(struct engine *engine, const struct sandbox_record *sandbox,
	const json_t *set, struct build_cache_entry *ret_layer, struct err *err) must_check;

/* Forgets one that turned out to be missing. */
void dependency_layer_forget(
	struct engine *engine, const struct sandbox_record *sandbox, const json_t *set);

/* Makes one, on the thread of a job, and notes it. Takes as long as pip and npm do. */
int dependency_layer_make(struct engine *engine, struct job *job,
	const struct sandbox_record *sandbox, const json_t *set,
	struct build_cache_entry *ret_layer, struct err *err) must_check;

/* The name that the driver knows a layer by. */
const char *dependency_layer_name(const struct build_cache_entry *layer);
