/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_archive.h"

#include "base/buf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define NAMES_LEN   160 /* of its images, in a refusal */
#define READ_SIZE   (256u << 10)
#define LINKS_MAX   8 /* from one name to the next */
#define INDEX_NAME  "index.json"
#define DOCKER_NAME "manifest.json"
#define TAG_KEY	    "org.opencontainers.image.ref.name"

/* A file of the archive, or a link to another one (docker save writes a layer that occurs twice so). */
struct member {
	char name[IMAGE_ARCHIVE_NAME_MAX];
	char target[IMAGE_ARCHIVE_NAME_MAX]; /* empty: a file */
	struct digest digest;
	uint64_t size;
};

struct image_archive {
	const struct image_source *source;
	struct blob_store *store;
	uint64_t left; /* bytes that may still come */
	struct member *members;
	size_t count;
	uint8_t input[READ_SIZE];
};

static void json_freep(json_t **json)
{
	json_decref(*json);
}

static int refuse(struct err *err, const char *why, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_image_archive",
		"send an OCI layout as a tar, or what docker save writes",
		"the archive is no image: %s %.120s", why, what);
}

static la_ssize_t read_input(struct archive *archive, void *arg, const void **data)
{
	struct image_archive *images = arg;
	ssize_t n = images->source->read(images->source->arg, images->input, READ_SIZE);

	if (n < 0)
		archive_set_error(archive, (int)-n, "the archive ended early");
	*data = images->input;
	return n;
}

static void clean_name(const char *text, char name[IMAGE_ARCHIVE_NAME_MAX])
{
	while (text[0] == '.' && text[1] == '/')
		text += 2;
	snprintf(name, IMAGE_ARCHIVE_NAME_MAX, "%s", text);
}

/*
 * "a/layer.tar" and "../b/layer.tar" make "b/layer.tar"; a target that begins with a slash counts from
 * the archive's root. A name is only looked up, never opened.
 */
static void resolve_target(const struct member *member, char name[IMAGE_ARCHIVE_NAME_MAX])
{
	char base[IMAGE_ARCHIVE_NAME_MAX];
	const char *target = member->target;
	char *slash;

	if (target[0] == '/') {
		clean_name(target + 1, name);
		return;
	}
	snprintf(base, sizeof(base), "%s", member->name);
	slash = strrchr(base, '/');
	*(slash ? slash : base) = '\0';
	while (strncmp(target, "../", 3) == 0) {
		slash = strrchr(base, '/');
		*(slash ? slash : base) = '\0';
		target += 3;
	}
	snprintf(name, IMAGE_ARCHIVE_NAME_MAX, "%s%s%s", base, base[0] ? "/" : "", target);
}

static struct member *find(struct image_archive *images, const char *wanted)
{
	char name[IMAGE_ARCHIVE_NAME_MAX];

	clean_name(wanted, name);
	for (int links = 0; links < LINKS_MAX; links++) {
		struct member *found = NULL;

		for (size_t i = 0; i < images->count && !found; i++) {
			if (strcmp(images->members[i].name, name) == 0)
				found = &images->members[i];
		}
		if (!found || !found->target[0])
			return found;
		resolve_target(found, name);
	}
	return NULL;
}

static struct member *find_digest(struct image_archive *images, const struct digest *digest)
{
	for (size_t i = 0; i < images->count; i++) {
		if (!images->members[i].target[0] &&
			digest_equals(&images->members[i].digest, digest))
			return &images->members[i];
	}
	return NULL;
}

static int keep_file(struct image_archive *images, struct archive *archive, struct member *member,
	struct err *err)
{
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	int r = blob_writer_open(images->store, NULL, images->left, &writer, err);

	while (r == 0) {
		const void *data;
		size_t len;
		la_int64_t offset;
		int code = archive_read_data_block(archive, &data, &len, &offset);

		if (code == ARCHIVE_EOF)
			break;
		if (code != ARCHIVE_OK || (uint64_t)offset != blob_writer_length(writer))
			return refuse(err, "damaged at", member->name);
		r = blob_writer_add(writer, data, len, err);
	}
	if (r < 0)
		return r;
	member->size = blob_writer_length(writer);
	images->left -= member->size;
	return blob_writer_commit(writer, &member->digest, err);
}

/* Reads a file of a directory into the store; the bytes and files of an archive are those of a directory. */
static int bring_file(struct image_archive *images, const char *name, const struct digest *digest,
	struct member **ret_member, struct err *err)
{
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	struct member *member = &images->members[images->count];
	int r;

	if (images->count == IMAGE_ARCHIVE_FILES_MAX)
		return refuse(err, "too many files", "");
	if ((r = images->source->open(images->source->arg, name, err)) < 0 ||
		(r = blob_writer_open(images->store, digest, images->left, &writer, err)) < 0)
		return r;
	/* A part that an earlier pull has left is not the beginning of this file for certain. */
	r = blob_writer_length(writer) > 0 ? blob_writer_restart(writer, err) : 0;
	while (r == 0) {
		ssize_t n = images->source->read(images->source->arg, images->input, READ_SIZE);

		if (n < 0)
			return err_from(err, (int)n, "read %s", name);
		if (n == 0)
			break;
		r = blob_writer_add(writer, images->input, (size_t)n, err);
	}
	if (r < 0)
		return r;
	*member = (struct member){.size = blob_writer_length(writer)};
	snprintf(member->name, sizeof(member->name), "%s", name);
	r = blob_writer_commit(writer, &member->digest, err);
	if (r < 0)
		return r;
	images->left -= member->size;
	images->count++;
	*ret_member = member;
	return 0;
}

/* The file of that digest, which is brought now if it is one of a directory; NULL if there is none: -ENOENT. */
static int bring_digest(struct image_archive *images, const struct digest *digest,
	struct member **ret_member, struct err *err)
{
	char name[IMAGE_ARCHIVE_NAME_MAX];

	*ret_member = find_digest(images, digest);
	if (*ret_member)
		return 0;
	if (!images->source->open)
		return refuse(err, "it lacks", digest->text);
	snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(digest));
	return bring_file(images, name, digest, ret_member, err);
}

static int keep_entry(struct image_archive *images, struct archive *archive,
	struct archive_entry *entry, struct err *err)
{
	const char *name = archive_entry_pathname(entry);
	const char *link = archive_entry_symlink(entry), *hard = archive_entry_hardlink(entry);
	struct member *member = &images->members[images->count];

	if (archive_entry_filetype(entry) == AE_IFDIR)
		return 0;
	if (!name || strlen(name) >= IMAGE_ARCHIVE_NAME_MAX ||
		images->count == IMAGE_ARCHIVE_FILES_MAX)
		return refuse(err, "too many files, or too long a name", "");
	clean_name(name, member->name);
	if (link || hard) {
		const char *target = link ? link : hard;

		if (strlen(target) >= IMAGE_ARCHIVE_NAME_MAX)
			return refuse(err, "too long a link", name);
		snprintf(member->target, sizeof(member->target), "%s%s", hard ? "/" : "", target);
		images->count++;
		return 0;
	}
	if (archive_entry_filetype(entry) != AE_IFREG)
		return refuse(err, "not a file:", name);
	images->count++;
	return keep_file(images, archive, member, err);
}

static int keep_entries(struct image_archive *images, struct archive *archive, struct err *err)
{
	while (true) {
		struct archive_entry *entry;
		int code = archive_read_next_header(archive, &entry), r;

		if (code == ARCHIVE_EOF)
			return 0;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return refuse(err, "cannot be read:", archive_error_string(archive));
		r = keep_entry(images, archive, entry, err);
		if (r < 0)
			return r;
	}
}

static int load(struct image_archive *images, const struct digest *digest, char **ret_text,
	size_t *ret_len, struct err *err)
{
	return blob_store_load(images->store, digest, IMAGE_DOCUMENT_MAX, ret_text, ret_len, err);
}

static int load_json(struct image_archive *images, const struct member *member, json_t **ret_json,
	struct err *err)
{
	auto_free char *text = NULL;
	size_t len;
	int r = load(images, &member->digest, &text, &len, err);

	if (r < 0)
		return r;
	*ret_json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	return *ret_json ? 0 : refuse(err, "no JSON in", member->name);
}

/* Adds a name of one of the images of an archive, as far as there is room. */
static void add_name(char *names, size_t size, const char *name)
{
	size_t len = strlen(names);

	if (name && len + strlen(name) + 2 < size)
		snprintf(names + len, size - len, "%s%s", len > 0 ? ", " : "", name);
}

static int refuse_choice(const char *tag, const char *names, struct err *err)
{
	if (!names[0])
		return refuse(err, "it has no image", tag ? tag : "with a name");
	if (!tag)
		return err_explain(err, ERR_INVALID, "invalid_image_archive",
			"choose one with the parameter tag", "the archive has several images: %s",
			names);
	return err_explain(err, ERR_INVALID, "invalid_image_archive",
		"choose one with the parameter tag", "the archive has no image %.80s, but %s", tag,
		names);
}

static const char *name_of_entry(const json_t *entry)
{
	return json_string_value(json_object_get(json_object_get(entry, "annotations"), TAG_KEY));
}

/* The entry of an index with that tag; without a tag its only one. */
static json_t *choose_entry(json_t *manifests, const char *tag)
{
	size_t i;
	json_t *entry;

	if (!tag)
		return json_array_size(manifests) == 1 ? json_array_get(manifests, 0) : NULL;
	json_array_foreach(manifests, i, entry)
	{
		const char *name = name_of_entry(entry);

		if (name && strcmp(name, tag) == 0)
			return entry;
	}
	return NULL;
}

static int refuse_entries(const json_t *manifests, const char *tag, struct err *err)
{
	char names[NAMES_LEN] = "";
	json_t *entry;
	size_t i;

	json_array_foreach(manifests, i, entry)
	{
		add_name(names, sizeof(names), name_of_entry(entry));
	}
	return refuse_choice(tag, names, err);
}

/* Follows an index to the manifest for this machine; indexes may be nested once or twice. */
static int follow(struct image_archive *images, const struct digest *first,
	struct image_manifest *ret_manifest, struct err *err)
{
	struct digest at = *first;

	for (int depth = 0; depth < 3; depth++) {
		auto_free char *text = NULL;
		enum image_document kind;
		struct image_blob chosen;
		struct member *member;
		size_t len;
		int r = bring_digest(images, &at, &member, err);

		if (r == 0)
			r = load(images, &at, &text, &len, err);
		if (r == 0)
			r = image_manifest_read(text, len, &kind, &chosen, ret_manifest, err);
		if (r < 0 || kind == IMAGE_MANIFEST)
			return r;
		at = chosen.digest;
	}
	return refuse(err, "an index of an index of", at.text);
}

static int check_blob(struct image_archive *images, const struct image_blob *blob, struct err *err)
{
	struct member *member;
	int r = bring_digest(images, &blob->digest, &member, err);

	if (r < 0)
		return r;
	return member->size == blob->size
		       ? 0
		       : refuse(err, "its manifest tells another size of", blob->digest.text);
}

static int check_blobs(
	struct image_archive *images, const struct image_manifest *manifest, struct err *err)
{
	int r = check_blob(images, &manifest->config, err);

	for (size_t i = 0; r == 0 && i < manifest->layer_count; i++)
		r = check_blob(images, &manifest->layers[i], err);
	return r;
}

static int read_layout(struct image_archive *images, const struct member *index, const char *tag,
	struct image_manifest *ret_manifest, struct err *err)
{
	auto_(json_freep) json_t *json = NULL;
	struct digest digest;
	const json_t *entry;
	const char *text;
	int r = load_json(images, index, &json, err);

	if (r < 0)
		return r;
	entry = choose_entry(json_object_get(json, "manifests"), tag);
	text = json_string_value(json_object_get(entry, "digest"));
	if (!text)
		return refuse_entries(json_object_get(json, "manifests"), tag, err);
	if ((r = digest_parse(text, &digest, err)) < 0 ||
		(r = follow(images, &digest, ret_manifest, err)) < 0)
		return r;
	return check_blobs(images, ret_manifest, err);
}

static bool has_tag(const json_t *image, const char *tag)
{
	size_t i;
	json_t *name;

	json_array_foreach(json_object_get(image, "RepoTags"), i, name)
	{
		if (json_is_string(name) && strcmp(json_string_value(name), tag) == 0)
			return true;
	}
	return false;
}

static const json_t *choose_docker(const json_t *list, const char *tag)
{
	size_t i;
	json_t *image;

	if (!tag)
		return json_array_size(list) == 1 ? json_array_get(list, 0) : NULL;
	json_array_foreach(list, i, image)
	{
		if (has_tag(image, tag))
			return image;
	}
	return NULL;
}

static int refuse_docker(const json_t *list, const char *tag, struct err *err)
{
	char names[NAMES_LEN] = "";
	json_t *image, *name;
	size_t i, j;

	json_array_foreach((json_t *)list, i, image)
	{
		json_array_foreach(json_object_get(image, "RepoTags"), j, name)
		{
			add_name(names, sizeof(names), json_string_value(name));
		}
	}
	return refuse_choice(tag, names, err);
}

static int take_member(struct image_archive *images, const json_t *name,
	struct image_blob *ret_blob, struct err *err)
{
	const char *text = json_string_value(name);
	const struct member *member = text ? find(images, text) : NULL;

	if (!member)
		return refuse(err, "it lacks", text ? text : "a name");
	*ret_blob = (struct image_blob){.digest = member->digest, .size = member->size};
	return 0;
}

static int read_docker(struct image_archive *images, const struct member *list, const char *tag,
	struct image_manifest *ret_manifest, struct err *err)
{
	auto_(json_freep) json_t *json = NULL;
	const json_t *image, *layers;
	size_t i;
	json_t *name;
	int r = load_json(images, list, &json, err);

	if (r < 0)
		return r;
	image = choose_docker(json, tag);
	layers = json_object_get(image, "Layers");
	if (!image)
		return refuse_docker(json, tag, err);
	if (!json_is_array(layers) || json_array_size(layers) > IMAGE_LAYERS_MAX)
		return refuse(err, "no list of layers in", list->name);
	r = take_member(images, json_object_get(image, "Config"), &ret_manifest->config, err);
	ret_manifest->layer_count = json_array_size(layers);
	for (i = 0; r == 0 && i < ret_manifest->layer_count; i++) {
		name = json_array_get(layers, i);
		r = take_member(images, name, &ret_manifest->layers[i], err);
	}
	return r;
}

static int read_documents(struct image_archive *images, const char *tag,
	struct image_manifest *ret_manifest, struct err *err)
{
	const struct member *index = find(images, INDEX_NAME), *docker = find(images, DOCKER_NAME);

	/* New engines write both; only the one of docker save knows all names of its images. */
	if (docker)
		return read_docker(images, docker, tag, ret_manifest, err);
	if (index)
		return read_layout(images, index, tag, ret_manifest, err);
	return refuse(err, "it has neither " INDEX_NAME " nor", DOCKER_NAME);
}

static int read_archive(struct image_archive *images, struct err *err)
{
	struct archive *archive = archive_read_new();
	int r;

	if (!archive)
		abort();
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_zstd(archive);
	archive_read_support_format_tar(archive);
	archive_read_set_options(archive, "hdrcharset=BINARY");
	if (archive_read_open(archive, images, NULL, read_input, NULL) != ARCHIVE_OK)
		r = refuse(err, "cannot be read:", archive_error_string(archive));
	else
		r = keep_entries(images, archive, err);
	archive_read_free(archive);
	return r;
}

int image_archive_read(const struct image_source *source, const char *tag, uint64_t bytes_max,
	struct blob_store *store, struct image_manifest *ret_manifest, struct err *err)
{
	auto_free struct image_archive *images = mem_new(sizeof(*images));
	auto_free struct member *members =
		mem_new((IMAGE_ARCHIVE_FILES_MAX + 1) * sizeof(*members));
	auto_free struct image_manifest *manifest = mem_new(sizeof(*manifest));
	struct member *index;
	int r;

	*images = (struct image_archive){
		.source = source, .store = store, .left = bytes_max, .members = members};
	r = source->open ? bring_file(images, INDEX_NAME, NULL, &index, err)
			 : read_archive(images, err);
	if (r == 0)
		r = read_documents(images, tag, manifest, err);
	if (r == 0)
		*ret_manifest = *manifest;
	return r;
}
