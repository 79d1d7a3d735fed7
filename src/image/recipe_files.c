/* SPDX-License-Identifier: Apache-2.0 */
#include "image/recipe_files.h"

#include "base/buf.h"
#include "image/dockerfile.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <string.h>

#define LINKS_MAX 8 /* from one file of the request to the next */

static int refuse(struct err *err, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_recipe", NULL, "%s", what);
}

char *recipe_join_path(const char *dir, const char *name)
{
	struct buf path = BUF_INIT(2 * DOCKERFILE_WORD_MAX);
	auto_free char *whole = mem_printf("%s/%s", name[0] == '/' ? "" : dir, name);

	for (const char *at = whole; *at;) {
		size_t len;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len == 2 && strncmp(at, "..", 2) == 0) {
			while (path.len > 0 && path.data[--path.len] != '/')
				continue;
		} else if (len > 0 && !(len == 1 && *at == '.')) {
			buf_append(&path, "/", 1);
			buf_append(&path, at, len);
		}
		at += len;
	}
	if (path.len == 0)
		buf_append(&path, "/", 1);
	return buf_take_str(&path);
}

bool recipe_are_texts(const json_t *array, size_t max)
{
	size_t i;
	json_t *one;

	if (!json_is_array(array) || json_array_size(array) > max)
		return false;
	json_array_foreach(array, i, one)
	{
		if (!json_is_string(one) || strlen(json_string_value(one)) > DOCKERFILE_WORD_MAX)
			return false;
	}
	return true;
}

bool recipe_ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && strcmp(text + len - end_len, end) == 0;
}

bool recipe_is_archive(const char *path)
{
	return recipe_ends_in(path, ".tar") || recipe_ends_in(path, ".tar.gz") ||
	       recipe_ends_in(path, ".tgz");
}

static bool leads_up(const char *path)
{
	for (const char *at = path; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && strncmp(at, "..", 2) == 0)
			return true;
		at += len;
	}
	return false;
}

int recipe_decode(const json_t *content, uint8_t **ret_data, size_t *ret_len, struct err *err)
{
	const char *encoded = json_string_value(json_object_get(content, "base64"));
	const json_t *text = json_object_get(content, "text");
	size_t len, padding;
	auto_free uint8_t *data = NULL;

	if (!encoded) {
		text = text ? text : content;
		*ret_len = json_string_length(text);
		*ret_data = (uint8_t *)mem_strdup(json_string_value(text));
		return 0;
	}
	len = strlen(encoded);
	padding = len - strcspn(encoded, "=");
	data = mem_new(len / 4 * 3 + 1);
	/* OpenSSL passes over white space, ends at a hyphen and takes padding for zeros. */
	if (len % 4 || padding > 2 || strspn(encoded + len - padding, "=") != padding ||
		strpbrk(encoded, " \t\r\n-") ||
		EVP_DecodeBlock(data, (const unsigned char *)encoded, (int)len) < 0)
		return refuse(err, "a file of the request is not base64");
	*ret_len = len / 4 * 3 - padding;
	*ret_data = take_ptr(&data);
	return 0;
}

/* A path of the request as a plain, relative one; NULL with err set if it is none. */
static char *take_path(const char *field, const char *name, struct err *err)
{
	auto_free char *path = recipe_join_path("", name);

	if (path[1] && strlen(path) <= RECIPE_NAME_MAX && !leads_up(name) &&
		name[strlen(name) - 1] != '/')
		return mem_strdup(path + 1);
	err_explain(err, ERR_INVALID, "invalid_recipe", "name a file, without ..",
		"%s: %.120s is no path of a file", field, name);
	return NULL;
}

/* Takes over the content of the request under plain, relative paths. */
static int take_files(
	json_t *all, const json_t *source, const char *field, bool is_encoded, struct err *err)
{
	const json_t *files = json_object_get(source, field);
	const char *name;
	json_t *text;

	if (files && (!json_is_object(files) ||
			     json_object_size(files) + json_object_size(all) > RECIPE_FILES_MAX))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"field %s must be an object of at most %d files", field, RECIPE_FILES_MAX);
	json_object_foreach((json_t *)files, name, text)
	{
		auto_free char *path = take_path(field, name, err);
		auto_free uint8_t *data = NULL;
		json_auto_t *content =
			is_encoded ? json_pack("{s:O}", "base64", text) : json_incref(text);
		size_t len;
		int r = 0;

		if (!path)
			return -EINVAL;
		if (!json_is_string(text))
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"%s: %.120s must be a text", field, name);
		r = recipe_decode(content, &data, &len, err);
		if (r < 0)
			return r;
		json_object_set(all, path, content);
	}
	return 0;
}

static int take_modes(json_t *all, const json_t *modes, struct err *err)
{
	const char *name;
	json_t *value;

	if (modes && !json_is_object(modes))
		return refuse(err, "field modes must be an object");
	json_object_foreach((json_t *)modes, name, value)
	{
		auto_free char *path = take_path("modes", name, err);
		const char *text = json_string_value(value);
		json_t *content = path ? json_object_get(all, path) : NULL, *file;
		char *end = NULL;
		unsigned long mode = text ? strtoul(text, &end, 8) : 0;

		if (!path)
			return -EINVAL;
		if (!content || !text || !isdigit((unsigned char)*text) || *end || mode > 0777)
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"modes: %.120s must be a file of the request, with an octal number "
				"up to 777",
				name);
		file = json_is_object(content) ? json_copy(content)
					       : json_pack("{s:O}", "text", content);
		json_object_set_new(file, "mode", json_integer((json_int_t)mode));
		json_object_set_new(all, path, file);
	}
	return 0;
}

static int take_links(json_t *all, const json_t *links, struct err *err)
{
	const char *name;
	json_t *value;

	if (links && (!json_is_object(links) ||
			     json_object_size(links) + json_object_size(all) > RECIPE_FILES_MAX))
		return refuse(err, "field links must be an object, of not too many links");
	json_object_foreach((json_t *)links, name, value)
	{
		auto_free char *path = take_path("links", name, err);
		const char *target = json_string_value(value);

		if (!path)
			return -EINVAL;
		if (!target || !*target || strlen(target) > RECIPE_NAME_MAX)
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"links: %.120s must lead somewhere, in at most %d bytes", name,
				RECIPE_NAME_MAX);
		json_object_set_new(all, path, json_pack("{s:O}", "link", value));
	}
	return 0;
}

static int take_directories(json_t *all, const json_t *list, struct err *err)
{
	json_t *one;
	size_t i;

	if (list && (!recipe_are_texts(list, RECIPE_FILES_MAX) ||
			    json_array_size(list) + json_object_size(all) > RECIPE_FILES_MAX))
		return refuse(err, "field directories must be a list of paths, of not too many");
	json_array_foreach((json_t *)list, i, one)
	{
		auto_free char *path = take_path("directories", json_string_value(one), err);

		if (!path)
			return -EINVAL;
		json_object_set_new(all, path, json_pack("{s:b}", "directory", 1));
	}
	return 0;
}

int recipe_take_files(json_t *files, const json_t *source, struct err *err)
{
	int r;

	if ((r = take_files(files, source, "files", false, err)) < 0 ||
		(r = take_files(files, source, "files_base64", true, err)) < 0 ||
		(r = take_modes(files, json_object_get(source, "modes"), err)) < 0 ||
		(r = take_links(files, json_object_get(source, "links"), err)) < 0)
		return r;
	return take_directories(files, json_object_get(source, "directories"), err);
}

enum recipe_file_kind recipe_file_kind(const json_t *content)
{
	return json_object_get(content, "link")	       ? RECIPE_LINK
	       : json_object_get(content, "directory") ? RECIPE_DIRECTORY
						       : RECIPE_FILE;
}

int recipe_file_mode(const json_t *content)
{
	const json_t *mode = json_object_get(content, "mode");

	return mode ? (int)json_integer_value(mode) : 0644;
}

const char *recipe_link_target(const json_t *content)
{
	return json_string_value(json_object_get(content, "link"));
}

const json_t *recipe_resolve(const json_t *files, const char *path)
{
	auto_free char *at = mem_strdup(path);
	const json_t *content = json_object_get(files, at);

	for (int links = 0; content && recipe_file_kind(content) == RECIPE_LINK; links++) {
		auto_free char *dir = mem_strdup(at), *next = NULL;
		char *slash = strrchr(dir, '/');

		if (links == LINKS_MAX)
			return NULL;
		*(slash ? slash : dir) = '\0';
		next = recipe_join_path(dir, recipe_link_target(content));
		free(at);
		at = mem_strdup(next + 1);
		content = json_object_get(files, at);
	}
	return content;
}

size_t recipe_match(const json_t *files, const char *word,
	void (*each)(void *arg, const char *path, const char *below), void *arg)
{
	auto_free char *pattern = recipe_join_path("", word);
	const char *wanted = pattern + 1, *path;
	json_t *content;
	size_t count = 0;

	json_object_foreach((json_t *)files, path, content)
	{
		auto_free char *head = mem_strdup(path);
		const char *below = NULL;
		size_t len = strlen(path);

		/* The path itself, or any directory above it, may be what is named. */
		while (!below) {
			head[len] = '\0';
			if ((len == 0 && !*wanted) ||
				(len > 0 && fnmatch(wanted, head, FNM_PATHNAME) == 0))
				below = path + len + (len > 0 && path[len] == '/');
			if (len == 0)
				break;
			while (len > 0 && head[--len] != '/')
				continue;
		}
		if (!below)
			continue;
		count++;
		if (each)
			each(arg, path, below);
	}
	return count;
}
