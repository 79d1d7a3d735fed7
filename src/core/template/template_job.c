/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_job.h"

#include "base/fail_point.h"
#include "core/engine/sandbox_state.h"
#include "core/template/build/python_layer.h"
#include "core/template/template_source.h"
#include "model/access/owner.h"
#include "store/store_clock.h"
#include "store/template/store_template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct result {
	const struct job_record *job;
	const struct image_pulled *pulled;
	const char *reference;
	bool adds; /* a row that nobody asked for by a name */
	int64_t now_ms;
	int64_t version;
};

/* The next version, if there is anything new about it. */
static int keep(struct template_record *record, bool is_new, void *arg, struct err *err)
{
	struct result *result = arg;
	json_t *image = template_build_to_image(result->pulled);
	bool is_same;

	if (!image)
		return err_set(err, ERR_INVALID, "the image's config is not UTF-8");
	if (is_new && result->adds) {
		json_object_update(record->source, json_object_get(result->job->input, "source"));
		snprintf(record->job, sizeof(record->job), "%s", result->job->id);
		record->used_at_ms = result->now_ms;
	}
	if (strcmp(record->job, result->job->id) != 0) {
		json_decref(image);
		return err_explain(err, ERR_CONFLICT, "template_changed", NULL,
			"the template was removed or asked for anew while it was built");
	}
	if (json_object_size(record->options) > 0)
		json_object_set(image, "options", record->options);
	template_build_note_left_out(image, record->image, result->pulled);
	is_same = record->version > 0 && json_equal(image, record->image);
	json_decref(record->image);
	record->image = image;
	record->bytes = result->pulled->bytes;
	snprintf(record->reference, sizeof(record->reference), "%s", result->reference);
	snprintf(record->digest, sizeof(record->digest), "%s", result->pulled->digest.text);
	if (!is_same) {
		record->version++;
		record->created_at_ms = result->now_ms;
	}
	result->version = record->version;
	return 0;
}

static void log_left_out(struct template_build *build, const struct image_pulled *pulled)
{
	if (pulled->stripped)
		job_log(build->job,
			"%llu files lost attributes that no sandbox may have, such as "
			"capabilities",
			(unsigned long long)pulled->stripped);
	if (pulled->devices)
		job_log(build->job, "%llu devices were left out",
			(unsigned long long)pulled->devices);
}

static int build(struct template_build *build, const struct job_record *job, struct err *err)
{
	struct store *store = engine_store(build->engine);
	struct result result = {.job = job,
		.adds = json_is_true(json_object_get(job->input, "adds")),
		.now_ms = store_clock_ms(store)};
	struct image_pulled pulled;
	int r = build->make(build, json_object_get(job->input, "source"), &pulled, err);

	if (r < 0)
		return r;
	r = python_layer_add(build, &pulled);
	if (r < 0) {
		image_pulled_fini(&pulled);
		return r;
	}
	log_left_out(build, &pulled);
	fail_point("template.made");
	result.pulled = &pulled;
	/* What is made on an image is another one, which has no manifest. */
	result.reference = pulled.digest.text[0] ? build->reference : "";
	/* Its layers count as those of who asked for it, also if it is everybody's. */
	r = templates_keep(build->engine,
		json_is_true(json_object_get(job->input, "shared")) ? &owner_everybody
								    : build->owner,
		build->name, keep, &result, err);
	fail_point("template.kept");
	if (r == 0) {
		job_log(build->job, "%s is ready, version %lld", build->name,
			(long long)result.version);
		job_set_result(build->job, "version", json_integer(result.version));
	}
	image_pulled_fini(&pulled);
	return r;
}

int template_job_run(struct job *job, void *context, struct err *err)
{
	struct templates *templates = context;
	const struct job_record *record = job_record(job);
	struct template_build one = {.engine = templates_engine(templates),
		.owner = &record->owner,
		.name = json_string_value(json_object_get(record->input, "name")),
		.job = job,
		.make = template_source_make,
		.no_cache = json_is_true(json_object_get(record->input, "no_cache"))};
	int r = templates_begin(one.engine, err);

	if (r < 0)
		return r;
	pthread_mutex_init(&one.lock, NULL);
	r = build(&one, record, err);
	templates_end(one.engine);
	pthread_mutex_destroy(&one.lock);
	free(one.layers);
	/* What it was doing then fails in its own way. */
	return r < 0 && job_must_stop(job) ? -ECANCELED : r;
}

void template_job_ended(struct job *job, void *context)
{
	struct engine *engine = templates_engine(context);

	if (engine)
		engine->verbs->template_ended(engine, job);
}
