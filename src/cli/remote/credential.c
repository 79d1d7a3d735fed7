/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/credential.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *env(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

void credential_fini(struct credential *credential)
{
	explicit_bzero(credential->token, sizeof(credential->token));
}

static int accept_token(
	const char *text, const char *origin, struct credential *ret, struct err *err)
{
	size_t len = strlen(text);

	if (len >= sizeof(ret->token))
		return err_set(err, ERR_INVALID, "the token from %s is too long to be one", origin);
	for (size_t i = 0; i < len; i++) {
		if (text[i] <= 0x20 || text[i] > 0x7e)
			return err_set(err, ERR_INVALID,
				"the token from %s has a character that no token has", origin);
	}
	memcpy(ret->token, text, len + 1);
	snprintf(ret->origin, sizeof(ret->origin), "%s", origin);
	return 0;
}

/* The file of a data directory; without one there is no token, and the origin says where it was looked for. */
static int read_token_file(const char *data_dir, struct credential *ret, struct err *err)
{
	auto_free char *path = mem_printf("%s/token", data_dir);
	char text[CREDENTIAL_MAX + 2];
	ssize_t n = fd_read_file(AT_FDCWD, path, text, sizeof(text));
	int r;

	if (n < 0) {
		snprintf(ret->origin, sizeof(ret->origin), "looked for %s%s", path,
			n == -EACCES ? " (permission denied)" : "");
		return 0;
	}
	while (n > 0 && strchr(" \t\r\n", text[n - 1]))
		text[--n] = '\0';
	if (n == 0) {
		snprintf(ret->origin, sizeof(ret->origin), "%s is empty", path);
		return 0;
	}
	r = accept_token(text, path, ret, err);
	explicit_bzero(text, sizeof(text));
	return r;
}

int credential_find(
	const char *given, const char *data_dir, struct credential *ret, struct err *err)
{
	*ret = (struct credential){0};
	if (given)
		return accept_token(given, "--token", ret, err);
	if (env("SANDLOT_TOKEN"))
		return accept_token(env("SANDLOT_TOKEN"), "SANDLOT_TOKEN", ret, err);
	if (data_dir)
		return read_token_file(data_dir, ret, err);
	snprintf(ret->origin, sizeof(ret->origin),
		"a token file is only used with the socket of its daemon, without an address");
	return 0;
}
