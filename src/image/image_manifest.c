/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_manifest.h"

#include "base/buf.h"

#include <jansson.h>
#include <string.h>

#define JSON_FLAGS     (JSON_REJECT_DUPLICATES)
#define PLATFORMS_TEXT 200

/* The part of a media type that both families share. */
static const struct {
	const char *media_type;
	enum image_document kind;
} documents[] = {
	{"application/vnd.oci.image.index.v1+json", IMAGE_INDEX},
	{"application/vnd.docker.distribution.manifest.list.v2+json", IMAGE_INDEX},
	{"application/vnd.oci.image.manifest.v1+json", IMAGE_MANIFEST},
	{"application/vnd.docker.distribution.manifest.v2+json", IMAGE_MANIFEST},
};

static int refuse(struct err *err, const char *what, const char *why)
{
	return err_explain(err, ERR_INVALID, "invalid_image_document",
		"the image is damaged, or of a kind that is not supported", "the %s %s", what, why);
}

static int parse(const void *text, size_t len, const char *what, json_t **ret_json, struct err *err)
{
	json_error_t error;
	json_t *json;

	if (len > IMAGE_DOCUMENT_MAX)
		return refuse(err, what, "is too large");
	json = json_loadb(text, len, JSON_FLAGS, &error);
	if (!json_is_object(json)) {
		json_decref(json);
		return refuse(err, what, "is no JSON object");
	}
	*ret_json = json;
	return 0;
}

static void json_freep(json_t **json)
{
	json_decref(*json);
}

static int read_blob(
	const json_t *json, const char *what, struct image_blob *ret_blob, struct err *err)
{
	const char *digest = json_string_value(json_object_get(json, "digest"));
	const json_t *size = json_object_get(json, "size");

	if (!digest || !json_is_integer(size) || json_integer_value(size) < 0)
		return refuse(err, what, "has an entry without digest and size");
	ret_blob->size = (uint64_t)json_integer_value(size);
	return digest_parse(digest, &ret_blob->digest, err);
}

const char *image_architecture(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#else
	return "unknown";
#endif
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Attestations and the like are listed beside the images, for a platform that is none. */
static bool is_for_this_machine(const json_t *platform)
{
	return strcmp(text_of(platform, "os"), "linux") == 0 &&
	       strcmp(text_of(platform, "architecture"), image_architecture()) == 0;
}

static int refuse_platform(const json_t *manifests, struct err *err)
{
	struct buf found = BUF_INIT(PLATFORMS_TEXT);
	size_t i;
	json_t *entry;
	auto_free char *list = NULL;

	json_array_foreach(manifests, i, entry)
	{
		const json_t *platform = json_object_get(entry, "platform");

		buf_printf(&found, "%s%.20s/%.20s", found.len > 0 ? ", " : "",
			text_of(platform, "os"), text_of(platform, "architecture"));
	}
	list = buf_take_str(&found);
	return err_explain(err, ERR_NOT_FOUND, "image_platform",
		"take an image that is made for this machine",
		"the image is not made for linux/%s, only for %s", image_architecture(),
		list[0] ? list : "none");
}

static int read_index(const json_t *json, struct image_blob *ret_chosen, struct err *err)
{
	const json_t *manifests = json_object_get(json, "manifests");
	size_t i;
	json_t *entry;

	if (!json_is_array(manifests) || json_array_size(manifests) > IMAGE_PLATFORMS_MAX)
		return refuse(err, "image index", "has no list of manifests, or too long a one");
	json_array_foreach(manifests, i, entry)
	{
		const json_t *platform = json_object_get(entry, "platform");

		/* An index of a single image, as of a layout directory, may say nothing. */
		if (is_for_this_machine(platform) || (!platform && json_array_size(manifests) == 1))
			return read_blob(entry, "image index", ret_chosen, err);
	}
	return refuse_platform(manifests, err);
}

static int read_manifest(const json_t *json, struct image_manifest *ret_manifest, struct err *err)
{
	const json_t *layers = json_object_get(json, "layers");
	size_t i;
	json_t *entry;
	int r;

	if (!json_is_array(layers) || json_array_size(layers) > IMAGE_LAYERS_MAX)
		return refuse(err, "image manifest", "has no list of layers, or too long a one");
	r = read_blob(
		json_object_get(json, "config"), "image manifest", &ret_manifest->config, err);
	if (r < 0)
		return r;
	ret_manifest->layer_count = json_array_size(layers);
	json_array_foreach(layers, i, entry)
	{
		r = read_blob(entry, "image manifest", &ret_manifest->layers[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int find_kind(const json_t *json, enum image_document *ret_kind, struct err *err)
{
	const char *media_type = text_of(json, "mediaType");

	for (size_t i = 0; i < array_len(documents); i++) {
		if (strcmp(media_type, documents[i].media_type) == 0) {
			*ret_kind = documents[i].kind;
			return 0;
		}
	}
	if (media_type[0] || json_object_get(json, "schemaVersion") == NULL ||
		json_integer_value(json_object_get(json, "schemaVersion")) != 2)
		return refuse(err, "image manifest", "is of a kind that is not supported");
	/* OCI lets a document leave its type out. */
	*ret_kind = json_object_get(json, "manifests") ? IMAGE_INDEX : IMAGE_MANIFEST;
	return 0;
}

int image_manifest_read(const void *text, size_t len, enum image_document *ret_kind,
	struct image_blob *ret_chosen, struct image_manifest *ret_manifest, struct err *err)
{
	auto_(json_freep) json_t *json = NULL;
	int r = parse(text, len, "image manifest", &json, err);

	if (r < 0 || (r = find_kind(json, ret_kind, err)) < 0)
		return r;
	return *ret_kind == IMAGE_INDEX ? read_index(json, ret_chosen, err)
					: read_manifest(json, ret_manifest, err);
}

static void texts_fini(struct image_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->list[i]);
	free(texts->list);
}

static bool is_text(const char *text, size_t len)
{
	return len <= IMAGE_TEXT_MAX && !memchr(text, '\0', len);
}

/* A list of texts, or an object whose keys they are; JSON's null is an empty list. */
static int read_texts(
	const json_t *config, const char *key, struct image_texts *ret_texts, struct err *err)
{
	json_t *value = json_object_get(config, key), *item;
	size_t count = json_is_array(value) ? json_array_size(value) : json_object_size(value), i;
	const char *name;

	if ((value && !json_is_null(value) && !json_is_array(value) && !json_is_object(value)) ||
		count > IMAGE_TEXTS_MAX)
		return refuse(err, "image config", "has a list that is none, or is too long");
	ret_texts->list = mem_new((count + 1) * sizeof(*ret_texts->list));
	json_array_foreach(value, i, item)
	{
		if (!json_is_string(item) ||
			!is_text(json_string_value(item), json_string_length(item)))
			return refuse(err, "image config", "has an entry that is no text");
		ret_texts->list[ret_texts->count++] = mem_strdup(json_string_value(item));
	}
	json_object_foreach(value, name, item)
	{
		if (!is_text(name, strlen(name)))
			return refuse(err, "image config", "has a name that is too long");
		ret_texts->list[ret_texts->count++] = mem_strdup(name);
	}
	return 0;
}

static int read_text(const json_t *config, const char *key, char **ret_text, struct err *err)
{
	const json_t *value = json_object_get(config, key);

	if (value && !json_is_null(value) &&
		(!json_is_string(value) ||
			!is_text(json_string_value(value), json_string_length(value))))
		return refuse(err, "image config", "has a field that is no text");
	*ret_text = mem_strdup(text_of(config, key));
	return 0;
}

static int read_diff_ids(
	const json_t *json, size_t layer_count, struct image_config *config, struct err *err)
{
	const json_t *ids = json_object_get(json_object_get(json, "rootfs"), "diff_ids");
	size_t i;
	json_t *id;

	if (!json_is_array(ids) || json_array_size(ids) != layer_count ||
		layer_count > IMAGE_LAYERS_MAX)
		return refuse(err, "image config", "does not name the layers of the manifest");
	config->layer_count = layer_count;
	json_array_foreach(ids, i, id)
	{
		const char *text = json_string_value(id);
		int r = digest_parse(text ? text : "", &config->diff_ids[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

int image_config_read(const void *text, size_t len, size_t layer_count,
	struct image_config *ret_config, struct err *err)
{
	auto_(json_freep) json_t *json = NULL;
	struct image_config config = {0};
	const json_t *run;
	int r = parse(text, len, "image config", &json, err);

	if (r < 0)
		return r;
	run = json_object_get(json, "config");
	if ((r = read_diff_ids(json, layer_count, &config, err)) < 0 ||
		(r = read_text(run, "User", &config.user, err)) < 0 ||
		(r = read_text(run, "WorkingDir", &config.workdir, err)) < 0 ||
		(r = read_texts(run, "Env", &config.env, err)) < 0 ||
		(r = read_texts(run, "Entrypoint", &config.entrypoint, err)) < 0 ||
		(r = read_texts(run, "Cmd", &config.command, err)) < 0 ||
		(r = read_texts(run, "ExposedPorts", &config.ports, err)) < 0 ||
		(r = read_texts(run, "Volumes", &config.volumes, err)) < 0) {
		image_config_fini(&config);
		return r;
	}
	*ret_config = config;
	return 0;
}

void image_config_fini(struct image_config *config)
{
	free(config->user);
	free(config->workdir);
	free(config->health);
	texts_fini(&config->env);
	texts_fini(&config->entrypoint);
	texts_fini(&config->command);
	texts_fini(&config->ports);
	texts_fini(&config->volumes);
	*config = (struct image_config){0};
}
