/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/issuer.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever can write the file is whoever they like; whoever can read a secret in it, too. */
static int check_mode(const char *path, mode_t mode, const struct jwk_set *keys, struct err *err)
{
	if (!S_ISREG(mode) || (mode & 022))
		return err_set(err, ERR_DENIED,
			"%s must be a file that nobody but its owner can write", path);
	if (keys && jwk_set_has_secret(keys) && (mode & 044))
		return err_explain(err, ERR_DENIED, "invalid_setting", "chmod 600 it",
			"%s holds a secret, and others can read it", path);
	return 0;
}

static int read_keys(const char *path, struct jwk_set **ret_keys, struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	auto_free char *text = mem_new(JWK_FILE_MAX + 1);
	struct jwk_set *keys = NULL;
	struct stat st;
	ssize_t n;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open the keys in %s", path);
	r = check_mode(path, st.st_mode, NULL, err);
	if (r < 0)
		return r;
	n = read(fd, text, JWK_FILE_MAX + 1);
	if (n < 0)
		return err_sys(err, "read the keys in %s", path);
	r = jwk_set_parse(text, (size_t)n, &keys, err);
	explicit_bzero(text, (size_t)n);
	if (r < 0) {
		err_prefix(err, "the keys in %s", path);
		return r;
	}
	r = check_mode(path, st.st_mode, keys, err);
	if (r < 0)
		jwk_set_free(keys);
	else
		*ret_keys = keys;
	return r;
}

int issuer_open(const struct settings *settings, struct issuer *ret_issuer, struct err *err)
{
	int r;

	if (!settings->jwt_issuer[0])
		return 0;
	if (!settings->jwt_audience[0] || !settings->jwt_keys[0])
		return err_explain(err, ERR_INVALID, "invalid_setting", NULL,
			"jwt-issuer needs jwt-audience and jwt-keys beside it");
	r = read_keys(settings->jwt_keys, &ret_issuer->keys, err);
	if (r < 0)
		return r;
	ret_issuer->rules = (struct jwt_issuer){.keys = ret_issuer->keys,
		.issuer = settings->jwt_issuer,
		.audience = settings->jwt_audience,
		.organization = settings->jwt_organization_claim,
		.user = settings->jwt_user_claim,
		.scopes = settings->jwt_scopes_claim};
	return 0;
}

void issuer_close(struct issuer *issuer)
{
	jwk_set_free(take_ptr(&issuer->keys));
}

const struct jwt_issuer *issuer_rules(const struct issuer *issuer)
{
	return issuer->keys ? &issuer->rules : NULL;
}
