/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_reference.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_TAG "latest"
#define LOWER	    "abcdefghijklmnopqrstuvwxyz0123456789"
#define LETTERS	    LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static int refuse(struct err *err, const char *text, const char *why)
{
	return err_explain(err, ERR_INVALID, "invalid_image",
		"an image is [registry[:port]/]name[:tag][@sha256:digest]",
		"\"%.160s\" is not an image: %s", text, why);
}

/* A host name or an address, with or without a port. */
static bool is_registry(const char *text, size_t len)
{
	size_t host = strspn(text, LETTERS ".-");

	if (host > len)
		host = len;
	if (host == 0 || text[0] == '.' || text[0] == '-' || text[host - 1] == '.' ||
		text[host - 1] == '-')
		return false;
	if (host == len)
		return true;
	return text[host] == ':' && len - host - 1 >= 1 && len - host - 1 <= 5 &&
	       strspn(text + host + 1, "0123456789") >= len - host - 1;
}

/* Lower-case letters and digits, joined by ".", "_", "__" or dashes. */
static bool is_component(const char *text, size_t len)
{
	size_t at = 0;

	while (true) {
		size_t word = strspn(text + at, LOWER), join;

		if (word == 0)
			return false;
		at += word;
		if (at == len)
			return true;
		join = text[at] == '-'	 ? strspn(text + at, "-")
		       : text[at] == '_' ? strspn(text + at, "_")
					 : (size_t)(text[at] == '.');
		if (join == 0 || (text[at] == '_' && join > 2))
			return false;
		at += join;
	}
}

static bool is_repository(const char *text)
{
	while (true) {
		size_t len = strcspn(text, "/");

		if (len == 0 || !is_component(text, len))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

static bool is_tag(const char *text)
{
	return text[0] && text[0] != '.' && text[0] != '-' && strlen(text) <= IMAGE_TAG_MAX &&
	       text[strspn(text, LETTERS "._-")] == '\0';
}

/* How many bytes of the text name a registry; 0 if none is named. */
static size_t registry_length(const char *text)
{
	size_t len = strcspn(text, "/");

	if (text[len] != '/')
		return 0;
	return memchr(text, '.', len) || memchr(text, ':', len) ||
			       (len == 9 && strncmp(text, "localhost", len) == 0)
		       ? len
		       : 0;
}

/* Takes the registry from the beginning of the text, which is what is left of it afterwards. */
static int take_registry(char **text, const struct image_defaults *defaults,
	struct image_reference *reference, struct err *err)
{
	size_t len = registry_length(*text);

	if (len == 0) {
		snprintf(
			reference->registry, sizeof(reference->registry), "%s", defaults->registry);
		return 0;
	}
	if (len > IMAGE_REGISTRY_MAX || !is_registry(*text, len))
		return refuse(err, *text, "the registry before the first / is no host name");
	memcpy(reference->registry, *text, len);
	*text += len + 1;
	return 1;
}

/* Cuts the digest and the tag off the end of the text. */
static int take_version(char *text, struct image_reference *reference, struct err *err)
{
	char *at = strchr(text, '@'), *colon;
	int r;

	if (at) {
		*at = '\0';
		r = digest_parse(at + 1, &reference->digest, err);
		if (r < 0)
			return r;
	}
	colon = strrchr(text, ':');
	if (colon && !strchr(colon, '/')) {
		if (!is_tag(colon + 1))
			return refuse(err, text,
				"a tag has up to 128 letters, digits, \".\", \"_\" and \"-\"");
		*colon = '\0';
		snprintf(reference->tag, sizeof(reference->tag), "%s", colon + 1);
	} else if (!at) {
		snprintf(reference->tag, sizeof(reference->tag), DEFAULT_TAG);
	}
	return 0;
}

int image_reference_parse(const char *text, const struct image_defaults *defaults,
	struct image_reference *ret_reference, struct err *err)
{
	struct image_reference reference = {0};
	char copy[IMAGE_REFERENCE_MAX + 1], *rest = copy;
	bool is_named, is_plain;
	int r;

	if (strlen(text) > IMAGE_REFERENCE_MAX)
		return refuse(err, text, "it is too long");
	snprintf(copy, sizeof(copy), "%s", text);
	r = take_registry(&rest, defaults, &reference, err);
	if (r < 0)
		return r;
	is_named = r > 0;
	r = take_version(rest, &reference, err);
	if (r < 0)
		return r;
	if (!is_repository(rest))
		return refuse(err, text,
			"a name has lower-case letters and digits, joined by \".\", \"_\", \"-\" "
			"and \"/\"");
	is_plain = !is_named && defaults->prefix[0] && !strchr(rest, '/');
	if (strlen(rest) + (is_plain ? strlen(defaults->prefix) + 1 : 0) > IMAGE_REPOSITORY_MAX)
		return refuse(err, text, "its name is too long");
	snprintf(reference.repository, sizeof(reference.repository), "%s%s%s",
		is_plain ? defaults->prefix : "", is_plain ? "/" : "", rest);
	*ret_reference = reference;
	return 0;
}

void image_reference_write(
	const struct image_reference *reference, char text[static IMAGE_REFERENCE_MAX + 1])
{
	const char *digest = reference->digest.text;

	snprintf(text, IMAGE_REFERENCE_MAX + 1, "%s/%s%s%s%s%s", reference->registry,
		reference->repository, reference->tag[0] ? ":" : "", reference->tag,
		digest[0] ? "@" : "", digest);
}

const char *image_reference_version(const struct image_reference *reference)
{
	return reference->digest.text[0] ? reference->digest.text : reference->tag;
}

bool image_reference_is_explicit(const char *text)
{
	return strpbrk(text, "/:@") != NULL;
}
