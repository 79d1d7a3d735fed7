/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What callers ask of sandboxes: the defaults and the policy in front of the verbs (sandbox.h). Every
 * way into the daemon calls these functions with plain values (model/sandbox/sandbox_spec.h), so that a sandbox
 * is the same whichever way it was asked for.
 */
#pragma once

#include "core/sandbox/sandbox.h"
#include "model/access/caller.h"
#include "model/sandbox/sandbox_spec.h"

/* What came of a request for a sandbox. */
struct sandbox_request_result {
	struct sandbox *sandbox; /* a reference */
	bool is_created;	 /* for an ensure: it was not there in health */
	char job[ID_LEN + 1];	 /* what to wait for */
};

/*
 * Makes the sandbox and starts it. What is not given is as the operator has set it. 1: its image is not there, and
 * nothing was made; when the job of the result is over, the caller asks again. Who does not want to wait
 * (spec.waits) gets a sandbox that is `creating` (late_create.h).
 */
int sandbox_request_create(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
	must_check;

/*
 * The same for a sandbox that is there for one thing (an execution): it is in no list, never idle, and outlives no
 * daemon. It is removed with sandbox_request_purge_builder().
 */
int sandbox_request_create_passing(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
	must_check;

/* A passing one that is nobody's yet, of a template that this owner sees and that is there. */
int sandbox_request_create_waiting(struct engine *engine, const struct owner *viewer,
	const char *template_name, struct sandbox **ret_sandbox, struct err *err) must_check;

/* The caller's sandbox of that id, or project, in health; made if need be. As above. */
int sandbox_request_ensure(struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, struct sandbox_request_result *ret_result, struct err *err)
	must_check;

/* Whether the caller may give such a network and such start commands to sandboxes: those of a template, which may run
 * the image's own program or a ready check too. */
int sandbox_request_check_template(const struct engine *engine, const struct caller *caller,
	const struct sandbox_spec *spec, bool runs_more, struct err *err) must_check;

/* Changes a sandbox; what it may reach and who may see its previews acts at once. */
int sandbox_request_change(struct sandbox *sandbox, const struct caller *caller,
	const struct sandbox_change *change, struct err *err) must_check;

/* A port gets a preview, or another one. */
struct sandbox_port_change {
	uint16_t number;
	enum choice is_public, keeps_prefix; /* unset: as it was */
};

int sandbox_request_change_port(struct sandbox *sandbox, const struct sandbox_port_change *change,
	struct sandbox_port *ret_port, struct err *err) must_check;

/* Which of the caller's sandboxes are listed: NULL is any. */
struct sandbox_filter {
	const char *status, *template_name, *project, *session;
	struct text_pair label; /* a name of NULL: any */
	const char *after;	/* the id of the last one of the page before, or NULL */
	unsigned limit;		/* at most so many */
};

/* Calls each for those that fit, in order of id, until it says false; the record is borrowed. */
int sandbox_request_list(struct engine *engine, const struct caller *caller,
	const struct sandbox_filter *filter,
	bool (*each)(const struct sandbox_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* The same for workspaces that removed sandboxes left; only `after` and `limit` of the filter may be given. */
int sandbox_request_list_removed(struct engine *engine, const struct caller *caller,
	const struct sandbox_filter *filter,
	bool (*each)(const struct workspace_record *record, void *arg), void *arg, struct err *err)
	must_check;

/*
 * Gives a sandbox members in roles that it has not yet: 0; 1 if the template of one is not there, which the job
 * brings: then nothing was done, and the caller asks again when the job is over.
 */
int sandbox_request_add_members(struct sandbox *sandbox, const struct caller *caller,
	const struct member_spec *members, size_t count, char ret_job[ID_LEN + 1], struct err *err)
	must_check;

/*
 * What is to wait in a pool (core/pool/pool.h): a sandbox of a template of that owner, of which it takes `image`, with the
 * members that the template gives, and nothing else. -ENOENT if the template of a member is not there.
 */
int sandbox_request_draft_pooled(struct engine *engine, const struct owner *owner,
	const char *template_name, const json_t *image, struct sandbox_record *ret_draft,
	struct err *err) must_check;

/* It is noted as a builder before it is made, so that it is in no list and outlives no daemon. */
int sandbox_request_create_builder(struct engine *engine, const struct owner *owner,
	const struct sandbox_builder_spec *spec, struct sandbox **ret_sandbox, struct err *err)
	must_check;
int sandbox_request_purge_builder(struct engine *engine, const char *id, struct err *err)
	must_check;

/* Makes an orphan (orphan.h) a stopped sandbox of that owner, with the defaults. */
int sandbox_request_adopt(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err) must_check;
