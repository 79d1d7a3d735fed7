/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/registry_auth.h"

#include "base/fd.h"

#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX (256u << 10)
#define AUTH_MAX 4096

/* "host", "https://host", "https://host/v1/": all are found in such files. */
static bool is_for(const char *key, const char *registry)
{
	const char *scheme = strstr(key, "://");
	size_t len;

	if (scheme)
		key = scheme + 3;
	len = strcspn(key, "/");
	return strlen(registry) == len && strncmp(key, registry, len) == 0;
}

/* "user:password" in base64. */
static int decode(const char *text, struct registry_auth *auth)
{
	unsigned char plain[AUTH_MAX];
	size_t len = strlen(text), padding = 0;
	char *colon;
	int n;

	if (len == 0 || len % 4 != 0 || len / 4 * 3 >= sizeof(plain))
		return -1;
	while (padding < 2 && text[len - 1 - padding] == '=')
		padding++;
	n = EVP_DecodeBlock(plain, (const unsigned char *)text, (int)len);
	if (n < (int)padding)
		return -1;
	plain[(size_t)n - padding] = '\0';
	colon = strchr((char *)plain, ':');
	if (!colon || strlen((char *)plain) != (size_t)n - padding)
		return -1;
	*colon = '\0';
	auth->user = mem_strdup((char *)plain);
	auth->password = mem_strdup(colon + 1);
	explicit_bzero(plain, sizeof(plain));
	return 0;
}

static const char *text_of(const json_t *entry, const char *name)
{
	const char *text = json_string_value(json_object_get(entry, name));

	return text ? text : "";
}

/* What an entry has: `auth`, or user and password apart. One without either has its password in another program. */
static int read_entry(const json_t *entry, const char *registry, const char *path,
	struct registry_auth *ret_auth, struct err *err)
{
	const char *auth = text_of(entry, "auth");

	if (text_of(entry, "identitytoken")[0])
		return err_explain(err, ERR_INTERNAL, "invalid_auth_file",
			"log in with a password or an access token",
			"%s has an identity token for %s, which cannot be used", path, registry);
	if (auth[0])
		return decode(auth, ret_auth) == 0
			       ? 0
			       : err_explain(err, ERR_INTERNAL, "invalid_auth_file",
					 "write it with docker login",
					 "the password of %s in %s cannot be read", registry, path);
	if (text_of(entry, "username")[0]) {
		ret_auth->user = mem_strdup(text_of(entry, "username"));
		ret_auth->password = mem_strdup(text_of(entry, "password"));
	}
	return 0;
}

int registry_auth_read(
	const char *path, const char *registry, struct registry_auth *ret_auth, struct err *err)
{
	auto_free char *text = mem_new(FILE_MAX);
	ssize_t len = fd_read_file(AT_FDCWD, path, text, FILE_MAX);
	json_t *json, *entry;
	const char *key;
	int r = 0;

	if (len < 0)
		return err_from(err, (int)len, "read the passwords of registries in %s", path);
	json = json_loads(text, 0, NULL);
	explicit_bzero(text, FILE_MAX);
	if (!json)
		return err_explain(err, ERR_INTERNAL, "invalid_auth_file",
			"write it with docker login", "%s is no JSON", path);
	json_object_foreach(json_object_get(json, "auths"), key, entry)
	{
		if (r == 0 && !ret_auth->user && is_for(key, registry))
			r = read_entry(entry, registry, path, ret_auth, err);
	}
	json_decref(json);
	return r;
}

void registry_auth_fini(struct registry_auth *auth)
{
	if (auth->password)
		explicit_bzero(auth->password, strlen(auth->password));
	free(auth->user);
	free(auth->password);
	*auth = (struct registry_auth){0};
}
