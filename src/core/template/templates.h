/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all templates have in common: the settings, the blobs, who uses layers now, and how much is being written. Builds
 * (core/template/build) stand on this, and requests (core/template/templates_request.h) on builds.
 */
#pragma once

#include "blob/blob_store.h"
#include "core/engine/engine.h"
#include "core/template/image/layer_install.h"
#include "core/template/image/registry_mirror.h"
#include "core/template/image/short_name.h"
#include "image/image_reference.h"
#include "image/registry.h"
#include "model/template/template_record.h"

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
	const char *apt_mirror, *pip_index, *npm_registry, *apk_mirror, *go_proxy;
	const char *package_ca;	   /* whose certificates these are trusted by; NULL: the image's */
	uint64_t disk_reserve;	   /* what the disk keeps free while images are fetched */
	int64_t layer_retention_s; /* layers that nothing used for so long are removed; 0: never */
};

struct templates;

/* Blobs are kept in a directory of the daemon's own, which is borrowed. */
int templates_open(const struct templates_config *config, int blobs_fd,
	struct templates **ret_templates, struct err *err) must_check;
void templates_close(struct templates *templates);

/* From now on there is an engine, and templates can be built. */
void templates_attach(struct templates *templates, struct engine *engine);
int64_t templates_layer_retention_s(const struct templates *templates);
bool templates_are_attached(void *templates);
struct engine *templates_engine(struct templates *templates);

/* The operator's mirror for packages of "apt", "pip", "npm" or "apk", or NULL. */
const char *templates_mirror(const struct templates *templates, const char *kind);

/* Lines of a sources.list for a suite of Debian: of that mirror, or of the host. A new array. */
json_t *templates_apt_sources(const struct templates *templates, const char *suite);

/* The certificates that the operator's mirrors are trusted by, a new text; *ret_text is NULL if there are none. */
int templates_package_ca(const struct templates *templates, char **ret_text, struct err *err)
	must_check;

/* Whether the operator offers one of the templates that need no image. */
bool templates_offers(const struct engine *engine, const char *name);

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

/* Held while a job and the row of its template come together. */
void templates_lock_asking(struct engine *engine);
void templates_unlock_asking(struct engine *engine);
