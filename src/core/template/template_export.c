/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_export.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "core/engine/sandbox_state.h"
#include "core/template/build/template_build.h"
#include "core/template/image/tree_stream.h"
#include "core/template/templates.h"
#include "image/layer_tar.h"
#include "model/template/template.h"
#include "store/template/store_template.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEDIA	   "application/vnd.oci.image."
#define COPY_PIECE (256u << 10)

struct export
{
	struct engine *engine;
	struct blob_store *blobs;
	struct image_pulled image;
	struct image_blob layers[IMAGE_LAYERS_MAX]; /* as they are packed */
	struct digest diff_ids[IMAGE_LAYERS_MAX];   /* of the same, not compressed */
	struct image_blob config, manifest;
};

/* --- layers --- */

/* One layer goes two ways: plain into its diff id, compressed into a blob. */
struct layer_export {
	struct layer_tar *plain, *packed;
	struct digest_stream *hash;
	struct blob_writer *writer;
};

static int add_hash(void *arg, const void *data, size_t len, struct err *err)
{
	(void)err;
	digest_stream_add(arg, data, len);
	return 0;
}

static int add_blob(void *arg, const void *data, size_t len, struct err *err)
{
	return blob_writer_add(arg, data, len, err);
}

static int take_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	struct layer_export *layer = arg;
	int r = layer_tar_entry(layer->plain, entry, err);

	return r < 0 ? r : layer_tar_entry(layer->packed, entry, err);
}

static int take_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct layer_export *layer = arg;
	int r = layer_tar_content(layer->plain, offset, data, len, err);

	return r < 0 ? r : layer_tar_content(layer->packed, offset, data, len, err);
}

static int pack(
	struct export *export, struct layer_export *layer, const char *name, struct err *err)
{
	const struct layer_sink sink = {.entry = take_entry, .content = take_content, .arg = layer};
	const struct layer_tar_output hash = {.write = add_hash, .arg = layer->hash};
	const struct layer_tar_output blob = {.write = add_blob, .arg = layer->writer};
	int r;

	if ((r = layer_tar_open(&hash, false, &layer->plain, err)) < 0 ||
		(r = layer_tar_open(&blob, true, &layer->packed, err)) < 0 ||
		(r = tree_stream_run(engine_driver(export->engine), DRIVER_TREE_LAYER, name, true,
			 &sink, err)) < 0 ||
		(r = layer_tar_finish(layer->plain, err)) < 0)
		return r;
	return layer_tar_finish(layer->packed, err);
}

static int export_layer(struct export *export, size_t index, struct err *err)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	struct layer_export layer = {.hash = hash};
	int r = blob_writer_open(export->blobs, NULL, LAYER_INSTALL_BYTES_MAX, &writer, err);

	if (r < 0)
		return r;
	layer.writer = writer;
	r = pack(export, &layer, digest_hex(&export->image.config.diff_ids[index]), err);
	layer_tar_close(layer.plain);
	layer_tar_close(layer.packed);
	if (r < 0)
		return r;
	export->layers[index].size = blob_writer_length(writer);
	digest_stream_read(hash, &export->diff_ids[index]);
	fail_point("export.packed");
	return blob_writer_commit(writer, &export->layers[index].digest, err);
}

/* --- documents --- */

static json_t *texts_to_json(const struct image_texts *texts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < texts->count; i++)
		json_array_append_new(array, json_string(texts->list[i]));
	return array;
}

/* {"8080/tcp": {}} */
static json_t *texts_to_set(const struct image_texts *texts)
{
	json_t *set = json_object();

	for (size_t i = 0; i < texts->count; i++)
		json_object_set_new(set, texts->list[i], json_object());
	return set;
}

static json_t *make_config(const struct export *export)
{
	const struct image_config *from = &export->image.config;
	json_t *diff_ids = json_array();
	json_t *config = json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "Env",
		texts_to_json(&from->env), "User", from->user, "WorkingDir", from->workdir,
		"Entrypoint", texts_to_json(&from->entrypoint), "Cmd",
		texts_to_json(&from->command), "ExposedPorts", texts_to_set(&from->ports),
		"Volumes", texts_to_set(&from->volumes));

	for (size_t i = 0; i < from->layer_count; i++)
		json_array_append_new(diff_ids, json_string(export->diff_ids[i].text));
	return json_pack("{s:s, s:s, s:o, s:{s:s, s:o}}", "architecture", image_architecture(),
		"os", "linux", "config", config, "rootfs", "type", "layers", "diff_ids", diff_ids);
}

static json_t *descriptor(const char *type, const struct image_blob *blob)
{
	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", blob->digest.text, "size",
		(json_int_t)blob->size);
}

static json_t *make_manifest(const struct export *export)
{
	json_t *layers = json_array();

	for (size_t i = 0; i < export->image.config.layer_count; i++)
		json_array_append_new(
			layers, descriptor(MEDIA "layer.v1.tar+gzip", &export->layers[i]));
	return json_pack("{s:i, s:s, s:o, s:o}", "schemaVersion", 2, "mediaType",
		MEDIA "manifest.v1+json", "config",
		descriptor(MEDIA "config.v1+json", &export->config), "layers", layers);
}

/* Takes over the document. */
static int keep_document(
	struct export *export, json_t *document, struct image_blob *ret_blob, struct err *err)
{
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	auto_free char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	int r;

	json_decref(document);
	if (!text)
		return err_set(err, ERR_INTERNAL, "the template's config cannot be written");
	r = blob_writer_open(export->blobs, NULL, IMAGE_DOCUMENT_MAX, &writer, err);
	if (r == 0)
		r = blob_writer_add(writer, text, strlen(text), err);
	ret_blob->size = strlen(text);
	return r < 0 ? r : blob_writer_commit(writer, &ret_blob->digest, err);
}

/* --- the tar around them --- */

struct output {
	struct blob_writer *writer;
	struct err *err;
	int failure;
};

static la_ssize_t write_output(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct output *output = arg;

	(void)archive;
	if (output->failure == 0)
		output->failure = blob_writer_add(output->writer, data, len, output->err);
	return (la_ssize_t)len;
}

static int begin_file(struct archive *archive, const char *name, uint64_t size, struct err *err)
{
	struct archive_entry *entry = archive_entry_new();
	int r;

	archive_entry_copy_pathname(entry, name);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)size);
	r = archive_write_header(archive, entry);
	archive_entry_free(entry);
	return r < ARCHIVE_WARN ? err_set(err, ERR_INTERNAL, "an archive cannot be written") : 0;
}

static int put_text(struct archive *archive, const char *name, const char *text, struct err *err)
{
	int r = begin_file(archive, name, strlen(text), err);

	if (r == 0)
		archive_write_data(archive, text, strlen(text));
	return r;
}

static int put_blob(const struct export *export, struct archive *archive,
	const struct image_blob *blob, struct err *err)
{
	auto_free char *name = mem_printf("blobs/sha256/%s", digest_hex(&blob->digest));
	auto_free char *piece = mem_new(COPY_PIECE);
	auto_fd int fd = -1;
	ssize_t n = 0;
	int r = blob_store_read(export->blobs, &blob->digest, &fd, err);

	if (r == 0)
		r = begin_file(archive, name, blob->size, err);
	while (r == 0 && (n = read(fd, piece, COPY_PIECE)) > 0)
		archive_write_data(archive, piece, (size_t)n);
	return r == 0 && n < 0 ? err_sys(err, "read a blob") : r;
}

static int put_index(
	const struct export *export, struct archive *archive, const char *name, struct err *err)
{
	json_t *one = descriptor(MEDIA "manifest.v1+json", &export->manifest);
	json_auto_t *index = json_pack("{s:i, s:s, s:[o]}", "schemaVersion", 2, "mediaType",
		MEDIA "index.v1+json", "manifests", one);
	auto_free char *text = NULL;

	json_object_set_new(
		one, "annotations", json_pack("{s:s}", "org.opencontainers.image.ref.name", name));
	text = json_dumps(index, JSON_COMPACT);
	return put_text(archive, "index.json", text, err);
}

static int put_all(
	const struct export *export, struct archive *archive, const char *name, struct err *err)
{
	int r = put_text(archive, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", err);

	if (r == 0)
		r = put_index(export, archive, name, err);
	if (r == 0)
		r = put_blob(export, archive, &export->manifest, err);
	if (r == 0)
		r = put_blob(export, archive, &export->config, err);
	for (size_t i = 0; i < export->image.config.layer_count && r == 0; i++) {
		bool is_twin = false;

		for (size_t k = 0; k < i; k++)
			is_twin |=
				digest_equals(&export->layers[k].digest, &export->layers[i].digest);
		if (!is_twin)
			r = put_blob(export, archive, &export->layers[i], err);
	}
	return r;
}

/* The file has no name once it is opened: it goes with its descriptor. */
static int write_tar(
	struct export *export, const char *name, int *ret_fd, uint64_t *ret_size, struct err *err)
{
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	struct output output = {.err = err};
	struct archive *archive;
	struct digest digest;
	struct err ignored;
	int r = blob_writer_open(export->blobs, NULL, IMAGE_ARCHIVE_MAX, &writer, err);

	if (r < 0)
		return r;
	output.writer = writer;
	archive = archive_write_new();
	archive_write_set_format_pax_restricted(archive);
	archive_write_set_bytes_in_last_block(archive, 512);
	archive_write_open(archive, &output, NULL, write_output, NULL);
	r = put_all(export, archive, name, err);
	archive_write_free(archive);
	if (r == 0)
		r = output.failure;
	*ret_size = blob_writer_length(writer);
	if (r == 0)
		r = blob_writer_commit(writer, &digest, err);
	if (r == 0)
		r = blob_store_read(export->blobs, &digest, ret_fd, err);
	if (r == 0)
		(void)!blob_store_remove(export->blobs, &digest, &ignored);
	return r;
}

static int find(struct export *export, const struct owner *owner, const char *name, struct err *err)
{
	struct template_record record;
	int r;

	if (template_find(name))
		return err_explain(err, ERR_INVALID, "not_an_image", NULL,
			"%s is the host's files, not an image", name);
	r = store_template_find(engine_store(export->engine), owner, name, &record, err);
	if (r < 0)
		return r;
	if (record.version == 0)
		r = err_explain(err, ERR_CONFLICT, "template_not_ready", "build it first",
			"the template %s has not been built", name);
	else
		r = template_build_from_image(record.image, &export->image, err);
	template_record_fini(&record);
	return r;
}

static int run(
	struct export *export, const char *name, int *ret_fd, uint64_t *ret_size, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < export->image.config.layer_count && r == 0; i++)
		r = export_layer(export, i, err);
	if (r == 0)
		r = keep_document(export, make_config(export), &export->config, err);
	if (r == 0)
		r = keep_document(export, make_manifest(export), &export->manifest, err);
	return r < 0 ? r : write_tar(export, name, ret_fd, ret_size, err);
}

int template_export_run(struct engine *engine, const struct owner *owner, const char *name,
	int *ret_fd, uint64_t *ret_size, struct err *err)
{
	auto_free struct export *export = mem_new(sizeof(*export));
	int r;

	export->engine = engine;
	r = find(export, owner, name, err);
	if (r < 0)
		return r;
	export->blobs = templates_blobs(engine->config.templates);
	r = templates_begin(engine, err);
	if (r == 0) {
		r = run(export, name, ret_fd, ret_size, err);
		templates_end(engine);
	}
	image_pulled_fini(&export->image);
	return r;
}
