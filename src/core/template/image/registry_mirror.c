/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/registry_mirror.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_MAX (2 * IMAGE_REGISTRY_MAX + IMAGE_REPOSITORY_MAX + 3)

struct entry {
	char registry[IMAGE_REGISTRY_MAX + 1]; /* empty: the default one */
	struct registry_mirror mirror;
};

static int copy(char *place, size_t size, const char *text, size_t len)
{
	if (len >= size)
		return -EINVAL;
	memcpy(place, text, len);
	place[len] = '\0';
	return 0;
}

/* A host with or without a port, and what stands before names there, are what a reference may have. */
static bool is_usable(const struct entry *entry)
{
	char text[ENTRY_MAX];
	struct image_reference parsed;
	const struct image_defaults defaults = {.registry = "", .prefix = ""};
	const char *names[] = {entry->registry, entry->mirror.host};

	for (size_t i = 0; i < array_len(names); i++) {
		/* Without a dot or a port it would be read as the owner of an image. */
		bool is_named = strpbrk(names[i], ".:") || strcmp(names[i], "localhost") == 0;

		if (i == 0 && !names[i][0])
			continue;
		snprintf(text, sizeof(text), "%s/%s%sx", names[i], i ? entry->mirror.prefix : "",
			i && entry->mirror.prefix[0] ? "/" : "");
		if (!is_named || image_reference_parse(text, &defaults, &parsed, NULL) < 0)
			return false;
	}
	return true;
}

/* Reads an entry of len bytes. */
static int read_entry(const char *text, size_t len, struct entry *ret_entry)
{
	const char *equals = memchr(text, '=', len), *host = equals ? equals + 1 : text, *slash;
	size_t rest = len - (size_t)(host - text);
	struct entry entry = {0};
	int r = 0;

	if (equals)
		r = copy(entry.registry, sizeof(entry.registry), text, (size_t)(equals - text));
	slash = memchr(host, '/', rest);
	if (r == 0)
		r = copy(entry.mirror.host, sizeof(entry.mirror.host), host,
			slash ? (size_t)(slash - host) : rest);
	if (r == 0 && slash)
		r = copy(entry.mirror.prefix, sizeof(entry.mirror.prefix), slash + 1,
			rest - (size_t)(slash + 1 - host));
	if (r < 0 || (equals && equals == text) || !is_usable(&entry))
		return -EINVAL;
	*ret_entry = entry;
	return 0;
}

/* The next entry of a list; false at its end. One that cannot be read is left out; then *ret_is_wrong. */
static bool next_entry(const char **rest, struct entry *ret_entry, bool *ret_is_wrong)
{
	*ret_is_wrong = false;
	while (**rest) {
		const char *text = *rest;
		size_t len = strcspn(text, ",");

		*rest = text + len + (text[len] == ',');
		if (read_entry(text, len, ret_entry) == 0)
			return true;
		*ret_is_wrong = true;
	}
	return false;
}

int registry_mirror_check(const char *setting, struct err *err)
{
	const char *rest = setting;
	struct entry entry;
	bool is_wrong;

	while (next_entry(&rest, &entry, &is_wrong) && !is_wrong)
		continue;
	return is_wrong ? err_set(err, ERR_INVALID,
				  "registry-mirror is a list of [REGISTRY=]HOST[/PREFIX], such as "
				  "registry.example=mirror.example:5000")
			: 0;
}

bool registry_mirror_get(const char *setting, const char *default_registry, const char *registry,
	unsigned number, struct registry_mirror *ret_mirror)
{
	const char *rest = setting;
	struct entry entry;
	bool is_wrong;

	while (next_entry(&rest, &entry, &is_wrong)) {
		const char *of = entry.registry[0] ? entry.registry : default_registry;

		if (strcmp(of, registry) != 0 || number-- > 0)
			continue;
		*ret_mirror = entry.mirror;
		return true;
	}
	return false;
}

bool registry_mirror_is(const char *setting, const char *host)
{
	const char *rest = setting;
	struct entry entry;
	bool is_wrong, is_one = false;

	while (!is_one && next_entry(&rest, &entry, &is_wrong))
		is_one = strcmp(entry.mirror.host, host) == 0;
	return is_one;
}

int registry_mirror_translate(const struct registry_mirror *mirror,
	const struct image_reference *reference, struct image_reference *ret_reference)
{
	struct image_reference there = *reference;

	if (strlen(mirror->prefix) + 1 + strlen(reference->repository) >= sizeof(there.repository))
		return -EMSGSIZE;
	snprintf(there.registry, sizeof(there.registry), "%s", mirror->host);
	snprintf(there.repository, sizeof(there.repository), "%s%s%s", mirror->prefix,
		mirror->prefix[0] ? "/" : "", reference->repository);
	*ret_reference = there;
	return 0;
}
