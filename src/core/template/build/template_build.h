/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every source of templates (template_source.h) needs while it is made into layers and a stack of them, by a job
 * (template_job.h).
 */
#pragma once

#include "core/engine/engine.h"
#include "core/job/job.h"
#include "core/template/image/image_pull.h"

#define TEMPLATE_JOB_KIND "template"

/* One that is under way; for sources. */
struct template_build {
	struct engine *engine;
	const struct owner *owner;
	const char *name; /* of the template */
	const char *part; /* what is made for it at present, for people; NULL: it itself */
	struct job *job;
	/* Makes what a source says: a template may build on one that must be made first (template_source_make()). */
	int (*make)(struct template_build *build, const json_t *source,
		struct image_pulled *ret_pulled, struct err *err);
	bool no_cache;				 /* nothing that an earlier build made is taken */
	char reference[IMAGE_REFERENCE_MAX + 1]; /* of the image that was brought last, or empty */

	pthread_mutex_t lock;
	struct template_layer *layers; /* how far each is; under the lock */
	size_t layer_count;
	uint64_t told_ms;
	bool has_news; /* that were not told */
};

/* How layers are brought in for this build: image_pull.h. Its blobs stay until all builds have ended. */
struct image_pull template_build_pull(struct template_build *build);

/* Brings an image from its registry, which has connect_s seconds to be reached; 0: the usual. */
int template_build_fetch(struct template_build *build, const char *reference, unsigned connect_s,
	struct image_pulled *ret_pulled, struct err *err) must_check;

/*
 * What a template is made of that another one builds on: its layers, stack and config. An image that was not
 * used before is brought by this build, since a job that waits for a job may wait for ever. A template
 * that needs no image (host) is refused. The caller ends it with image_pulled_fini().
 */
int template_build_base(struct template_build *build, const char *name,
	struct image_pulled *ret_base, struct err *err) must_check;

/* Whether a build for that owner could begin with it now, before anything is made. */
int template_build_check_base(const struct engine *engine, const struct owner *owner,
	const char *name, struct err *err) must_check;

/*
 * Notes in an image what was left out of its layers as they were unpacked. Layers that were there already were unpacked
 * before: what `before` tells, the image of the last version, stays true as long as it has the same ones.
 */
void template_build_note_left_out(
	json_t *image, const json_t *before, const struct image_pulled *pulled);

/* What sandboxes take of an image (sandbox_record.image), and back. */
json_t *template_build_to_image(const struct image_pulled *pulled);
int template_build_from_image(const json_t *image, struct image_pulled *ret_pulled, struct err *err)
	must_check;
