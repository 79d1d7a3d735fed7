/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages of Python and Node that a sandbox has beside its template. They are a layer
 * (dependency_layer.h) that the sandbox sees, read-only, at DRIVER_LAYER_PLACE; its commands find them by
 * their environment (core/process/environment.h). The record of the sandbox names the layer, so it is
 * shown again after each start, and in forks.
 *
 * A set that was installed before is there at once. Else a job installs it, and what there was before stays
 * until then. Each request adds to what there is; one that fails changes nothing.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"
#include "core/job/job.h"
#include "model/template/dependency_set.h"

#define DEPENDENCIES_JOB_KIND "dependencies"

struct templates;

/* The row of its kind; `context` is the struct templates. A build that was cut short begins anew. */
#define DEPENDENCIES_JOB(templates_)                                                               \
	{                                                                                          \
		.name = DEPENDENCIES_JOB_KIND, .on_restart = JOB_RESTART_RETRY,                    \
		.is_ready = templates_are_attached, .run = dependencies_run,                       \
		.context = (templates_)                                                            \
	}

int dependencies_run(struct job *job, void *templates, struct err *err) must_check;

/* Asks for packages. They are there when it returns, or the record names the job that installs them. */
int dependencies_ask(struct sandbox *sandbox, const struct dependency_spec *spec, struct err *err)
	must_check;

/* The same for a sandbox that is about to be made: if they were installed before, it starts with them. */
int dependencies_fill_draft(struct engine *engine, const struct dependency_spec *spec,
	struct sandbox_record *draft, struct err *err) must_check;

/* Then, of one that was made: what is missing is asked for. A failure is in its record. */
void dependencies_complete(struct sandbox *sandbox, const struct dependency_spec *spec);

/*
 * Packages that an app keeps among its own files (launch/package_layer.h) are copied from a layer. This shows a
 * running sandbox the layer of just this set at DRIVER_LAYER_PLACE, until it stops or is shown another; its record stays
 * as it is. ERR_NOT_FOUND: the owner has none; ERR_CONFLICT: the sandbox has packages of its own there.
 */
int dependencies_lend(struct sandbox *sandbox, const struct dependency_spec *spec, struct err *err)
	must_check;

/* Has a job make such a layer for sandboxes to come, unless there is one. The sandbox itself stays as it is. */
int dependencies_prepare(
	struct sandbox *sandbox, const struct dependency_spec *spec, struct err *err) must_check;

/*
 * What was asked for, what is installed, and how that stands: {"requested", "installed", "status", "error",
 * "job"}. A new reference.
 */
json_t *dependencies_describe(struct engine *engine, const struct sandbox_record *record);

/* --- for the verbs; life is held --- */

/* It runs now, and its row is written next: shows what it has. If that fails, the record says why. */
void dependencies_show(struct sandbox *sandbox);

/* It is about to start, and is to have these packages too: dependencies_show() asks for what is missing. */
void dependencies_require(struct sandbox *sandbox, const json_t *set);

/* It is about to be removed: nothing needs to be installed for it. */
void dependencies_cancel(struct sandbox *sandbox);
