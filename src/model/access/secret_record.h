/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret that requests of sandboxes are given on their way out, without it ever being inside: which
 * server gets it, and as which field of the request. The value is not part of this.
 *
 * A secret is set together with the one server that may have it. Whoever lets a sandbox use a secret
 * names it and cannot say where it goes.
 */
#pragma once

#include "base/err.h"
#include "model/access/authority.h"
#include "model/sandbox/sandbox_record.h"

#define SECRET_NAME_MAX	  64 /* with its NUL, as all of these: a label of a host name */
#define SECRET_HEADER_MAX 64
#define SECRET_PREFIX_MAX 32
#define SECRET_VALUE_MAX  8192
#define SECRET_URL_MAX	  512
#define SECRETS_IN_USE	  16 /* that one sandbox may use */

#define SECRET_DOMAIN "internal" /* http://<name>.internal inside is the server */
#define SECRET_PORT   80

struct secret_record {
	char name[SECRET_NAME_MAX];
	struct owner owner;
	char url[SECRET_URL_MAX]; /* http or https, of the server: what paths inside begin at */
	char header[SECRET_HEADER_MAX]; /* the field */
	char prefix[SECRET_PREFIX_MAX]; /* what stands before the value in it */
	bool is_trusted; /* an administrator set it: the server may have an address that is not public */
	int64_t changed_at_ms;
};

/* A URL, taken apart. */
struct secret_server {
	bool is_tls;
	struct authority at;
	char host[AUTHORITY_TEXT_MAX]; /* the field Host: without the port that is usual */
	char path[SECRET_URL_MAX];     /* without a slash at its end; may be empty */
};

/* -EINVAL: not http or https, with a user, a query, a fragment, or steps (. and ..) in its path. */
int secret_server_read(const char *url, struct secret_server *ret_server) must_check;

/* Lower-case letters, digits and -, at most 63, neither first nor last a -. */
bool secret_name_is_valid(const char *name);

/* A token of HTTP that says nothing about where a message ends or whom it is for. */
bool secret_header_is_valid(const char *header);

/* Printable ASCII: nothing that could end a line or begin another field. */
bool secret_prefix_is_valid(const char *prefix);
bool secret_value_is_valid(const char *value, size_t len);

/* Whether a path has a step in it, also if it is encoded: it might leave what it begins at. */
bool secret_path_has_steps(const char *path, size_t len);
