/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User names and passwords of registries, from a file as `docker login` writes it: {"auths": {HOST[:PORT]: {"auth":
 * base64 of user:password}}}, or with "username" and "password" apart. Programs that keep passwords elsewhere
 * (credHelpers) are not started: an entry without any is as good as none. An identity token is an error.
 */
#pragma once

#include "base/err.h"

struct registry_auth {
	char *user; /* NULL: the file has none for this registry */
	char *password;
};

int registry_auth_read(const char *path, const char *registry, struct registry_auth *ret_auth,
	struct err *err) must_check;
void registry_auth_fini(struct registry_auth *auth);
