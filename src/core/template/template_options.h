/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the owner of a template sets beside its source: defaults of the sandboxes that are created from it. What a
 * create says goes before them, and they go before what the image says.
 *
 * They are kept as an object (template_record.options, and as `options` in the image of a version), whose
 * members are in the form that a sandbox's record has: env, user, workdir, start, ports, resources (in millis
 * and bytes), network, ready, pool, members (model/sandbox/member_default.h), languages, security (a profile of model/template/template.h), skeleton, start_image,
 * pinned. Only what was given is there.
 */
#pragma once

#include "model/sandbox/sandbox_spec.h"

#define TEMPLATE_USER_MAX	64
#define TEMPLATE_WORKDIR_MAX	512
#define TEMPLATE_LANGUAGES_MAX	16
#define TEMPLATE_LANGUAGE_MAX	32
#define TEMPLATE_POOL_MAX	64
#define TEMPLATE_READY_LINE_MAX 4096

/* The directory of an image that new workspaces are seeded from, unless the template names another. */
#define TEMPLATE_SKELETON "/opt/sandbox-skel"

/* The name of the start command that runs the image's own program. */
#define TEMPLATE_START_IMAGE "image"

/* As they are asked for; texts are borrowed. A member that is NULL, or not given, stays as it is. */
struct template_options {
	const struct sandbox_spec
		*spec; /* its resources, env, ports, network, starts and members */
	bool has_env, has_resources, has_ports, has_network, has_start,
		has_members;	    /* which of these are given */
	const char *user, *workdir; /* empty: as the image says */
	const char *ready_command;  /* or */
	int64_t ready_port;	    /* 0: none */
	bool has_ready;
	bool unsets_ready, unsets_network; /* what was given goes, and none is given */
	int64_t pool_size;		   /* -1: not given */
	struct text_list languages;
	const char *security; /* empty: default */
	const char *skeleton; /* empty: none */
	enum choice starts_image;
	enum choice is_pinned; /* sandboxes keep their version until they are reset */
};

/* 0, or ERR_INVALID that names the field. */
int template_options_check(const struct template_options *options, struct err *err) must_check;

/* Changes a kept object by those that are given. */
void template_options_set(json_t *kept, const struct template_options *options);

/* What a sandbox takes of an image: its config with the options in their place. Changes the image. */
void template_options_fill_image(json_t *image);

/* Makes of a sandbox that is about to be created, and of which a request said `spec`, one with the defaults of its
 * template. `usual` are the daemon's. */
void template_options_fill_draft(
	const json_t *image, const struct sandbox_spec *spec, struct sandbox_record *draft);

/* The same for the ports of one that has none. */
void template_options_fill_ports(const json_t *image, struct sandbox_record *draft);

/* The network that a template gives, as a spec; false if it gives none. The texts are the image's, and `texts` has room
 * for SPEC_ALLOW_MAX. */
bool template_options_network(
	const json_t *image, const char *texts[], struct network_spec *ret_network);

/* Of a sandbox that gets another version of its template: its start command of the image's program is that of the
 * new one. Changes the record; `image` is the new one, the record still has the old. */
void template_options_renew_start(struct sandbox_record *record, const json_t *image);

/* The start command that runs the image's own program; new, or NULL if it has none. */
json_t *template_options_image_start(const json_t *image);

/* Where new workspaces are seeded from; "" for nowhere. */
const char *template_options_skeleton(const json_t *options);

/* The limits that it gives; 0 for those that it does not. */
struct resources template_options_resources(const json_t *options);
