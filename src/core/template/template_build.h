/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A build of a template: a job of the kind "template", which makes a source (template_source.h) into layers
 * and a stack of them, and then the template's next version. What is there already is not made again, so
 * after a restart of the daemon it goes on. The version before stays in use until the next one is there.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/job/job.h"
#include "core/template/image_pull.h"

#define TEMPLATE_JOB_KIND "template"

/* The row of its kind; `context` is the struct templates. */
#define TEMPLATE_JOB(templates_)                                                                   \
	{                                                                                          \
		.name = TEMPLATE_JOB_KIND, .on_restart = JOB_RESTART_CONTINUE,                     \
		.is_ready = templates_are_attached, .run = template_build_run,                     \
		.ended = template_build_ended, .context = (templates_)                             \
	}

/* One that is under way; for sources. */
struct template_build {
	struct engine *engine;
	const struct owner *owner;
	const char *name; /* of the template */
	struct job *job;
	bool no_cache;				 /* nothing that an earlier build made is taken */
	char reference[IMAGE_REFERENCE_MAX + 1]; /* of the image that was brought last, or empty */

	pthread_mutex_t lock;
	struct template_layer *layers; /* how far each is; under the lock */
	size_t layer_count;
	uint64_t told_ms;
};

int template_build_run(struct job *job, void *templates, struct err *err) must_check;

/* Makes the sandboxes that waited for it, or says that they cannot be made. */
void template_build_ended(struct job *job, void *templates);

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

/* What sandboxes take of an image (sandbox_record.image), and back. */
json_t *template_build_to_image(const struct image_pulled *pulled);
int template_build_from_image(const json_t *image, struct image_pulled *ret_pulled, struct err *err)
	must_check;
