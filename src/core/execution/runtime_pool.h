/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters that wait: a passing sandbox (sandbox_request.h) in which the runner of a language has started, has loaded
 * the modules that a function names, if it waits for such calls, and waits for its request. The setting says how many
 * wait of a language and a template; beside these some wait of what was lately asked for: a language, a template (an
 * owner's own too, for calls of that owner), a set of imports. There is no code and no secret in it, and it is nobody's
 * until it is claimed, once; the sandbox is removed after that one execution, so no two owners ever share one. One thread
 * makes them, one at a time. While memory is scarce it makes none, and those go that the setting does not name.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/process/process.h"

struct runtime_pool;

/* From a text such as "auto,python=2,python@browser=1": auto has what is asked for wait for the next. "", "none": none.
 * ERR_INVALID. */
int runtime_pool_new(const char *text, struct runtime_pool **ret_pool, struct err *err) must_check;

/* Begins to fill it. */
void runtime_pool_open(struct runtime_pool *pool, struct engine *engine);

/* Ends the thread and removes what waits; before the engine is closed. */
void runtime_pool_close(struct runtime_pool *pool);

/* What one waits for. */
struct runtime_kind {
	const struct owner *owner; /* who asks */
	const char *language;
	const char *template_name; /* NULL: the default one */
	const json_t *imports;	   /* names of modules that are loaded; NULL: none */
};

/* Has one wait from now on, and for a while after the last who asked, if the setting has such ones wait. */
void runtime_pool_want(struct runtime_pool *pool, const struct runtime_kind *kind);

struct runtime {
	struct sandbox *sandbox; /* references */
	struct process *process;
};

/*
 * Of those that are wanted more wait, when there was none; without one that has loaded its imports, one that has none will
 * do.
 * 0: one that is the owner's from now on, who is to remove its sandbox. 1: none waits. An error is one that making a
 * sandbox would have too (a quota).
 */
int runtime_pool_claim(struct runtime_pool *pool, const struct runtime_kind *kind,
	struct runtime *ret_runtime, struct err *err) must_check;
