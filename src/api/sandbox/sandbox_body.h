/* SPDX-License-Identifier: Apache-2.0 */
/* The body of create, ensure and PATCH, and a sandbox as JSON. */
#pragma once

#include "api/api.h"
#include "api/sandbox/dependency_body.h"
#include "api/sandbox/member_body.h"
#include "api/sandbox/resources_body.h"
#include "api/sandbox/start_body.h"
#include "model/sandbox/sandbox_spec.h"
#include "wire/wall.h"

/* Parts of bodies that templates have too. */
struct sandbox_network_body {
	const char *mode;
	const json_t *allow, *secrets;
	int64_t bandwidth, connections;
};

#define SANDBOX_NETWORK_ROWS  5
#define SANDBOX_NETWORK_REACH 2 /* the first ones: what may be reached */
extern const struct field sandbox_network_rows[SANDBOX_NETWORK_ROWS];

extern const struct fields sandbox_body_fields;
extern const struct fields sandbox_patch_fields;

/* What the arrays of a decoded body point to; the texts themselves are the body's. */
struct sandbox_body_parts {
	struct text_pair env[SPEC_ENV_MAX], labels[SPEC_LABELS_MAX];
	struct port_spec ports[SANDBOX_PORTS_MAX];
	const char *allow[SPEC_ALLOW_MAX], *secrets[SECRETS_IN_USE];
	struct start_body start;
	struct dependency_parts dependencies;
	struct member_body_parts members;
};

/* The body of create and ensure, and that of PATCH. Large: they are made on the heap, of zeros. */
struct sandbox_body {
	struct sandbox_spec spec;
	struct sandbox_body_parts parts;
};

struct sandbox_change_body {
	struct sandbox_change change;
	struct network_spec network;
	struct sandbox_body_parts parts;
};

int sandbox_body_decode(const json_t *object, struct sandbox_body *ret_body, struct err *err)
	must_check;
int sandbox_body_decode_change(
	const json_t *object, struct sandbox_change_body *ret_body, struct err *err) must_check;

json_t *sandbox_resources_to_json(const struct resources *resources);
json_t *sandbox_walls_to_json(const struct walls *walls);
json_t *sandbox_to_json(const struct api *api, const struct sandbox_record *record);
