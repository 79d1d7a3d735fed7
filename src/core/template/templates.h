/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: what sandboxes start from. `host` and `browser` need nothing; all others are images,
 * under a name that somebody gave them, or directly by their reference ("python:3.12-slim").
 *
 * An owner has templates of its own and sees the operator's. A sandbox keeps what it took of a
 * template (sandbox_record.image) until it is created anew or reset.
 */
#pragma once

#include "blob/blob_store.h"
#include "core/engine/engine.h"
#include "core/template/layer_install.h"
#include "core/template/registry_mirror.h"
#include "core/template/short_name.h"
#include "core/template/template_options.h"
#include "image/image_archive.h"
#include "image/image_reference.h"
#include "image/registry.h"
#include "model/caller.h"
#include "model/template_record.h"

/* How registries are reached; from the settings. All texts are borrowed. */
struct templates_config {
	const char *registry; /* of names without one */
	const char *registry_prefix;
	const char *mirrors;	 /* of registries: registry_mirror.h */
	const char *short_names; /* of images: short_name.h */
	const char *plain;	 /* registries without TLS, separated by commas */
	const char *allowed;	 /* registries at private addresses, separated by commas */
	const char *ca_file;	 /* NULL: the system's certificates */
	const char *auth_file;	 /* as docker login writes it; NULL: none */
	unsigned stall_s;
	/* Addresses that packages come from, and what a builder may reach for them; NULL: the image's own. */
	const char *apt_mirror, *pip_index, *npm_registry;
	const char *package_ca;	   /* whose certificates these are trusted by; NULL: the image's */
	uint64_t disk_reserve;	   /* what the disk keeps free while images are fetched */
	int64_t layer_retention_s; /* layers that nothing used for so long are removed; 0: never */
};

struct templates;

/* Blobs are kept in a directory of the daemon's own, which is borrowed. */
int templates_open(const struct templates_config *config, int blobs_fd,
	struct templates **ret_templates, struct err *err) must_check;
void templates_close(struct templates *templates);

/* From now on there is an engine, templates can be built, and layers are collected (layer_collect.h). */
void templates_attach(struct templates *templates, struct engine *engine);
/* Ends that. Nothing is being built. */
void templates_detach(struct templates *templates);
int64_t templates_layer_retention_s(const struct templates *templates);
bool templates_are_attached(void *templates);
struct engine *templates_engine(struct templates *templates);

/* The operator's mirror for packages of "apt", "pip" or "npm", or NULL. */
const char *templates_mirror(const struct templates *templates, const char *kind);

/* Lines of a sources.list for a suite of Debian: of that mirror, or of the host. A new array. */
json_t *templates_apt_sources(const struct templates *templates, const char *suite);

/* The certificates that the operator's mirrors are trusted by, a new text; *ret_text is NULL if there are none. */
int templates_package_ca(const struct templates *templates, char **ret_text, struct err *err)
	must_check;

/*
 * Finds the template that a create means: 0, and what a sandbox takes of it; {} for host and browser. The name
 * may be the reference of an image. 1: it is not there yet, but will be when the job ret_job has succeeded,
 * which was begun now or before; the image has the defaults for sandboxes alone then. *ret_image is a new reference.
 */
int templates_resolve(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, char ret_job[ID_LEN + 1], struct err *err) must_check;

/* The same, but begins nothing: -ENOENT if it cannot be used now. */
int templates_look(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, struct err *err) must_check;

/* What a sandbox takes of the newest version; a new reference. */
json_t *templates_image_of(const struct template_record *record);

struct templates_request {
	const char *name;
	const json_t *source;		      /* template_source.h */
	const json_t *options;		      /* template_options.h, as they are kept; NULL: none */
	const struct template_options *asked; /* the same as they are asked for, to be checked */
	bool no_cache;
};

/*
 * Has a template built, as a job (template_build.h): a new one, or the next version of the owner's one of that
 * name. The same request joins the build under way; another one meanwhile is ERR_CONFLICT. If it is there
 * as it is asked for and cannot have changed, nothing is done. *ret_record is how it is then; the caller
 * ends it.
 */
int templates_ask(struct engine *engine, const struct caller *caller,
	const struct templates_request *request, struct template_record *ret_record,
	struct err *err) must_check;

/* The same of what it was made of before. */
int templates_rebuild(struct engine *engine, const struct caller *caller, const char *name,
	bool no_cache, struct template_record *ret_record, struct err *err) must_check;

/* Changes the options of a template: that is its next version. ERR_CONFLICT while it is built. */
int templates_change(struct engine *engine, const struct caller *caller, const char *name,
	const struct template_options *options, struct template_record *ret_record, struct err *err)
	must_check;

/* Makes a template of an archive that is read now. */
int templates_import(struct engine *engine, const struct owner *owner, const char *name,
	const struct image_source *source, const char *tag, struct template_record *ret_record,
	struct err *err) must_check;

/* Whether there is a newer version of the template that a sandbox was made from; *ret_image (may be NULL) is what it would
 * take of that, a new reference. */
bool templates_is_upgradable(
	struct engine *engine, const struct sandbox_record *sandbox, json_t **ret_image);

/* Whether the operator offers one of the templates that need no image. */
bool templates_offers(const struct engine *engine, const char *name);

/* Removes an owner's template that no sandbox uses, and cancels its build. Its layers stay until nothing needs them. */
int templates_remove(struct engine *engine, const struct owner *owner, const char *name,
	struct err *err) must_check;

/* --- for builds --- */

/* Parses the reference of an image, with the defaults of the settings. */
int templates_parse(const struct engine *engine, const char *text,
	struct image_reference *ret_reference, struct err *err) must_check;

/* The mirror of that number, from 0 on, that is asked before a registry; false if there are not so many. */
bool templates_mirror_of(const struct engine *engine, const char *registry, unsigned number,
	struct registry_mirror *ret_mirror);

/* The short name of that number, from 0 on, that the operator has set; false if there are not so many. */
bool templates_short_name(
	const struct engine *engine, unsigned number, struct short_name *ret_name);

/*
 * What a name stands for that no template has: the reference of an image, a short name of the operator's, or a row of
 * the catalogue. A new reference; NULL if it is none of these.
 */
json_t *templates_implied_source(const struct engine *engine, const char *name);

/* A registry as the settings have it, with its password if there is one. `settings` has the callbacks. */
int templates_open_registry(const struct engine *engine, const char *host,
	struct registry_settings *settings, struct registry **ret_registry, struct err *err)
	must_check;

/* Whether the operator lets a host be at any address; others must be public. */
bool templates_allow_host(const struct engine *engine, const char *host);

struct blob_store *templates_blobs(struct templates *templates);
struct layer_installs *templates_installs(struct templates *templates);

/*
 * Counts what is being written of an owner's layers, which no row counts yet; and whether the owner may have that and
 * so many bytes more: 0, or ERR_RATE.
 */
void templates_count_growth(struct engine *engine, const struct owner *owner, int64_t bytes);
int templates_check_quota(struct engine *engine, const struct owner *owner, uint64_t bytes,
	struct err *err) must_check;

/* Blobs stay while anything is being built. ERR_NO_SPACE; an error if the driver has no layers. */
int templates_begin(struct engine *engine, struct err *err) must_check;
void templates_end(struct engine *engine);

/* From before a create looks for its template until its row is written: so long that template stays. */
void templates_begin_use(struct engine *engine);
void templates_end_use(struct engine *engine);

/* What was used since then may be part of a build or a create under way; now, if there is none. By the clock of the
 * store. */
int64_t templates_using_since_ms(struct engine *engine);

/* Unless anything is being built, removes the parts of blobs, however new they are. */
void templates_sweep_parts(struct engine *engine);

/* store_template_change(), not while a template is asked for. */
int templates_keep(struct engine *engine, const struct owner *owner, const char *name,
	int (*change)(struct template_record *record, bool is_new, void *arg, struct err *err),
	void *arg, struct err *err) must_check;
