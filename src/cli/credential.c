/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/credential.h"

#include "base/buf.h"
#include "base/data_dir.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* 1 if the file gave a token, 0 if there is none (what was looked for goes into `looked`). */
static int try_file(const char *path, struct buf *looked, struct credential *ret, struct err *err)
{
	char text[CREDENTIAL_MAX + 2];
	ssize_t n = fd_read_file(AT_FDCWD, path, text, sizeof(text));
	int r;

	if (n < 0) {
		buf_printf(looked, "%s%s%s", looked->len ? ", " : "", path,
			n == -EACCES ? " (permission denied)" : "");
		return 0;
	}
	while (n > 0 && strchr(" \t\r\n", text[n - 1]))
		text[--n] = '\0';
	if (n == 0) {
		buf_printf(looked, "%s%s (empty)", looked->len ? ", " : "", path);
		return 0;
	}
	r = accept_token(text, path, ret, err);
	explicit_bzero(text, sizeof(text));
	return r < 0 ? r : 1;
}

static int try_files(struct credential *ret, struct err *err)
{
	auto_(buf_fini) struct buf looked = BUF_INIT(4 * PATH_MAX);
	auto_free char *configured = NULL;
	auto_free char *own_dir = data_dir_of_user();
	auto_free char *own = own_dir ? mem_printf("%s/token", own_dir) : NULL;
	static const char shared[] = DATA_DIR_OF_ROOT "/token";
	bool is_root = geteuid() == 0;
	const char *paths[3] = {NULL, is_root ? shared : own, is_root ? own : shared};
	auto_free char *list = NULL;

	if (env("SANDLOT_DATA_DIR"))
		paths[0] = configured = mem_printf("%s/token", env("SANDLOT_DATA_DIR"));
	for (size_t i = 0; i < array_len(paths); i++) {
		int r = paths[i] ? try_file(paths[i], &looked, ret, err) : 0;

		if (r != 0)
			return r < 0 ? r : 0;
	}
	list = buf_take_str(&looked);
	snprintf(ret->origin, sizeof(ret->origin), "looked for %s", list);
	return 0;
}

int credential_find(const char *given, bool is_loopback, struct credential *ret, struct err *err)
{
	*ret = (struct credential){0};
	if (given)
		return accept_token(given, "--token", ret, err);
	if (env("SANDLOT_TOKEN"))
		return accept_token(env("SANDLOT_TOKEN"), "SANDLOT_TOKEN", ret, err);
	if (is_loopback)
		return try_files(ret, err);
	snprintf(ret->origin, sizeof(ret->origin),
		"a token file is only offered to the daemon on this machine");
	return 0;
}
