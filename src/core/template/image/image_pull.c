/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/image_pull.h"

#include "base/fd.h"
#include "core/template/image/layer_install.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define INDEX_DEPTH 3 /* an index of an index of manifests is the most that there is */

/* A pull under way, which several threads work at. */
struct work {
	const struct image_pull *pull;
	struct registry *registry; /* NULL: all blobs are there */
	const char *repository;
	const struct image_manifest *manifest;
	const struct image_config *config;
	atomic_size_t next; /* the layer that nobody has taken yet */
	pthread_mutex_t lock;
	int result; /* of the first that failed */
	struct err err;
	uint64_t stripped, devices;
};

struct layer_progress {
	struct work *work;
	size_t index;
};

static void report(void *arg, uint64_t bytes)
{
	const struct layer_progress *progress = arg;
	const struct work *work = progress->work;

	if (work->pull->progress)
		work->pull->progress(work->pull->arg, progress->index, work->manifest->layer_count,
			bytes, work->manifest->layers[progress->index].size);
}

static int ignore_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	(void)arg, (void)entry, (void)err;
	return 0;
}

static int ignore_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	(void)arg, (void)offset, (void)data, (void)len, (void)err;
	return 0;
}

/* The layer is there, of another owner: reads it to its end, so that its digest is proved. */
static int prove_layer(const struct work *work, const struct image_blob *blob,
	const struct digest *diff_id, struct layer_result *ret_result, struct err *err)
{
	static const struct layer_sink sink = {.entry = ignore_entry, .content = ignore_content};
	int fd, r = blob_store_read(work->pull->blobs, &blob->digest, &fd, err);

	if (r < 0)
		return r;
	r = layer_reader_run(fd, diff_id, LAYER_INSTALL_BYTES_MAX, &sink, ret_result, err);
	fd_close(fd);
	return r;
}

static int fetch_layer(
	struct work *work, size_t index, struct layer_installed *installed, struct err *err)
{
	const struct image_pull *pull = work->pull;
	const struct image_blob *blob = &work->manifest->layers[index];
	const struct digest *diff_id = &work->config->diff_ids[index];
	struct layer_progress layer = {.work = work, .index = index};
	const struct registry_progress progress = {.moved = report, .arg = &layer};
	int r = 0;

	if (work->registry)
		r = registry_fetch_blob(
			work->registry, work->repository, blob, pull->blobs, &progress, err);
	if (r < 0)
		return r;
	r = layer_install(pull->installs, pull->driver, pull->blobs,
		&(struct layer_order){.owner = pull->owner,
			.blob = &blob->digest,
			.diff_id = diff_id,
			.begin = pull->begin,
			.may_grow = pull->may_grow,
			.arg = pull->arg},
		installed, err);
	if (r == 1)
		r = prove_layer(work, blob, diff_id, &installed->result, err);
	if (r < 0)
		return r;
	pull->note_layer(pull->arg, diff_id, installed);
	return 0;
}

static int bring_layer(
	struct work *work, size_t index, struct layer_installed *installed, struct err *err)
{
	const struct image_pull *pull = work->pull;
	const struct digest *diff_id = &work->config->diff_ids[index];
	struct layer_bringing claim;
	int r = 0;

	if (pull->has_layer(pull->arg, diff_id))
		return 0;
	/* Another job of the owner that fetches it may do so for long, and this one be cancelled meanwhile. */
	while (!layer_installs_claim(pull->installs, pull->owner, diff_id, &claim)) {
		r = pull->may_grow ? pull->may_grow(pull->arg, 0, err) : 0;
		if (r < 0)
			return r;
	}
	if (!pull->has_layer(pull->arg, diff_id))
		r = fetch_layer(work, index, installed, err);
	layer_installs_give_up(pull->installs, &claim);
	return r;
}

static void note_result(
	struct work *work, int r, const struct layer_result *result, const struct err *err)
{
	pthread_mutex_lock(&work->lock);
	work->stripped += result->stripped;
	work->devices += result->devices;
	if (r < 0 && work->result == 0) {
		work->result = r;
		work->err = *err;
	}
	pthread_mutex_unlock(&work->lock);
}

static void *bring_layers(void *arg)
{
	struct work *work = arg;

	while (true) {
		size_t index = atomic_fetch_add(&work->next, 1);
		struct layer_installed installed = {0};
		struct err err = {0};
		int r;

		if (index >= work->manifest->layer_count)
			return NULL;
		r = bring_layer(work, index, &installed, &err);
		note_result(work, r, &installed.result, &err);
		if (r < 0)
			atomic_store(&work->next, work->manifest->layer_count);
	}
}

/* Asks for what is to come, as far as that is known, before any of it is written. */
static int ask_for_all(const struct work *work, struct err *err)
{
	const struct image_pull *pull = work->pull;
	uint64_t bytes = 0;

	for (size_t i = 0; i < work->manifest->layer_count; i++) {
		uint64_t size = work->manifest->layers[i].size;

		if (!pull->has_layer(pull->arg, &work->config->diff_ids[i]))
			bytes = size < UINT64_MAX - bytes ? bytes + size : UINT64_MAX;
	}
	return bytes > 0 ? pull->may_bring(pull->arg, bytes, err) : 0;
}

static int bring_all(struct work *work, struct err *err)
{
	pthread_t threads[IMAGE_PULL_PARALLEL];
	size_t started = 0;
	int r = ask_for_all(work, err);

	if (r < 0)
		return r;
	pthread_mutex_init(&work->lock, NULL);
	while (started + 1 < IMAGE_PULL_PARALLEL && started + 1 < work->manifest->layer_count &&
		pthread_create(&threads[started], NULL, bring_layers, work) == 0)
		started++;
	bring_layers(work);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&work->lock);
	if (work->result < 0)
		*err = work->err;
	return work->result;
}

/* Of a layer that occurs twice the upper one counts: all that the lower one shows or hides, it does too. */
int image_pull_stack(const struct image_pull *pull, const struct image_config *config,
	struct digest *ret_stack, struct err *err)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	const char *names[IMAGE_LAYERS_MAX];
	size_t count = 0;
	int r;

	for (size_t i = config->layer_count; i-- > 0;) {
		const char *name = digest_hex(&config->diff_ids[i]);
		bool is_twin = false;

		for (size_t k = 0; k < count; k++)
			is_twin |= strcmp(names[k], name) == 0;
		if (is_twin)
			continue;
		names[count++] = name;
		digest_stream_add(hash, name, strlen(name));
	}
	digest_stream_read(hash, ret_stack);
	pthread_mutex_lock(&pull->installs->stacking);
	r = pull->begin(pull->arg, digest_hex(ret_stack), true, err);
	if (r == 0)
		r = pull->driver->ops->stack_layers(
			pull->driver, digest_hex(ret_stack), names, count, err);
	pthread_mutex_unlock(&pull->installs->stacking);
	return r;
}

static int read_config(const struct image_pull *pull, const struct image_manifest *manifest,
	struct image_config *ret_config, struct err *err)
{
	auto_free char *text = NULL;
	size_t len;
	int r = blob_store_load(
		pull->blobs, &manifest->config.digest, IMAGE_DOCUMENT_MAX, &text, &len, err);

	return r < 0 ? r : image_config_read(text, len, manifest->layer_count, ret_config, err);
}

/* With the manifest known: brings config and layers, and stacks them. */
static int bring(const struct image_pull *pull, struct registry *registry, const char *repository,
	const struct image_manifest *manifest, struct image_pulled *pulled, struct err *err)
{
	struct work work = {.pull = pull,
		.registry = registry,
		.repository = repository,
		.manifest = manifest,
		.config = &pulled->config};
	int r = 0;

	if (manifest->config.size > IMAGE_DOCUMENT_MAX)
		return err_set(err, ERR_TOO_LARGE, "the image's config is too large");
	if (registry)
		r = registry_fetch_blob(
			registry, repository, &manifest->config, pull->blobs, NULL, err);
	if (r < 0 || (r = read_config(pull, manifest, &pulled->config, err)) < 0 ||
		(r = bring_all(&work, err)) < 0 ||
		(r = image_pull_stack(pull, &pulled->config, &pulled->stack, err)) < 0)
		return r;
	for (size_t i = 0; i < manifest->layer_count; i++)
		pulled->bytes += manifest->layers[i].size;
	pulled->stripped = work.stripped;
	pulled->devices = work.devices;
	return 0;
}

/* Follows an index to the manifest for this machine. */
static int fetch_manifest(struct registry *registry, const struct image_reference *reference,
	struct image_manifest *manifest, struct digest *ret_digest, struct err *err)
{
	char version[IMAGE_TAG_MAX + DIGEST_LEN + 1];

	snprintf(version, sizeof(version), "%s", image_reference_version(reference));
	for (int depth = 0; depth < INDEX_DEPTH; depth++) {
		struct buf document = BUF_INIT(IMAGE_DOCUMENT_MAX);
		enum image_document kind = IMAGE_MANIFEST;
		struct image_blob chosen;
		struct digest found;
		int r = registry_fetch_manifest(
			registry, reference->repository, version, &document, &found, err);

		if (r == 0)
			r = image_manifest_read(
				document.data, document.len, &kind, &chosen, manifest, err);
		buf_fini(&document);
		if (r < 0)
			return r;
		if (depth == 0)
			*ret_digest = found;
		if (kind == IMAGE_MANIFEST)
			return 0;
		snprintf(version, sizeof(version), "%s", chosen.digest.text);
	}
	return err_explain(err, ERR_INVALID, "invalid_image_document", NULL,
		"the image is an index of an index of an index");
}

void image_pulled_fini(struct image_pulled *pulled)
{
	image_config_fini(&pulled->config);
}

int image_pull_registry(const struct image_pull *pull, struct registry *registry,
	const struct image_reference *reference, struct image_pulled *ret_pulled, struct err *err)
{
	auto_free struct image_manifest *manifest = mem_new(sizeof(*manifest));
	struct image_pulled pulled = {0};
	int r = fetch_manifest(registry, reference, manifest, &pulled.digest, err);

	if (r == 0)
		r = bring(pull, registry, reference->repository, manifest, &pulled, err);
	if (r < 0) {
		image_pulled_fini(&pulled);
		return r;
	}
	*ret_pulled = pulled;
	return 0;
}

int image_pull_archive(const struct image_pull *pull, const struct image_source *source,
	const char *tag, struct image_pulled *ret_pulled, struct err *err)
{
	auto_free struct image_manifest *manifest = mem_new(sizeof(*manifest));
	struct image_pulled pulled = {0};
	int r = image_archive_read(source, tag, IMAGE_ARCHIVE_MAX, pull->blobs, manifest, err);

	if (r == 0)
		r = bring(pull, NULL, NULL, manifest, &pulled, err);
	if (r < 0) {
		image_pulled_fini(&pulled);
		return r;
	}
	*ret_pulled = pulled;
	return 0;
}
