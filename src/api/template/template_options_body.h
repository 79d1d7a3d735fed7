/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a template that are defaults of its sandboxes (core/template/template_options.h), in POST and PATCH. */
#pragma once

#include "api/env_body.h"
#include "api/sandbox/member_body.h"
#include "api/sandbox/sandbox_body.h"
#include "core/template/template_options.h"

struct template_options_body {
	const json_t *env, *ports, *start, *members, *languages;
	struct sandbox_resources_body resources;
	struct sandbox_network_body network;
	const char *user, *workdir;
	struct {
		const char *command;
		int64_t port;
	} ready;
	struct {
		int64_t size;
	} pool;
	const char *security, *skeleton;
	enum field_boolean start_image, pinned;
};

extern const struct field template_options_body_ready[2];
extern const struct field template_options_body_pool[1];

/* The rows of a body whose member `options` is a struct template_options_body. */
#define TEMPLATE_OPTION_ROWS(body)                                                                 \
	{"env", FIELD_STRING_MAP, offsetof(body, options.env), 0, SPEC_ENV_MAX, 0,                 \
		"Environment of every command; it goes before that of the image.",                 \
		.check = env_body_check},                                                          \
		{"user", FIELD_STRING, offsetof(body, options.user), 0, TEMPLATE_USER_MAX - 1, 0,  \
			"Who runs commands: a number or a name of the image, with or without "     \
			":group; empty: as the image says."},                                      \
		{"workdir", FIELD_STRING, offsetof(body, options.workdir), 0,                      \
			TEMPLATE_WORKDIR_MAX - 1, 0,                                               \
			"Where commands run; empty: as the image says."},                          \
		{"start", FIELD_LINE_OR_LIST, offsetof(body, options.start), 1,                    \
			SPEC_START_COMMAND_MAX, 0,                                                 \
			"Start commands, as of a sandbox. Needs the scope run too.",               \
			.sub = start_body_rows, .sub_count = START_BODY_ROWS,                      \
			.check = start_body_check},                                                \
		{"ports", FIELD_PORT_LIST, offsetof(body, options.ports), 0, SANDBOX_PORTS_MAX, 0, \
			"Ports that have previews, instead of those that the image exposes."},     \
		{"resources", FIELD_OBJECT, offsetof(body, options.resources), 0, 0, 0, "Limits.", \
			.sub = sandbox_resources_rows, .sub_count = SANDBOX_RESOURCES_ROWS},       \
		{"network", FIELD_OBJECT, offsetof(body, options.network), 0, 0, FIELD_NULLABLE,   \
			"Egress policy; null: as the operator has set.",                           \
			.sub = sandbox_network_rows, .sub_count = SANDBOX_NETWORK_REACH},          \
		{"ready", FIELD_OBJECT, offsetof(body, options.ready), 0, 0, FIELD_NULLABLE,       \
			"How to tell that a sandbox is ready: its `ready`; null: as soon as it "   \
			"runs. A command needs the scope run too.",                                \
			.sub = template_options_body_ready,                                        \
			.sub_count = array_len(template_options_body_ready)},                      \
		{"pool", FIELD_OBJECT, offsetof(body, options.pool), 0, 0, 0,                      \
			"Sandboxes that are to wait for a create, with their start commands up.",  \
			.sub = template_options_body_pool,                                         \
			.sub_count = array_len(template_options_body_pool)},                       \
		{"members", FIELD_OBJECT_LIST, offsetof(body, options.members), 0, MEMBERS_MAX, 0, \
			"What runs beside a sandbox whose create asks for no members itself, as "  \
			"of a sandbox. Needs the scope run too.",                                  \
			.sub = member_body_rows, .sub_count = MEMBER_BODY_ROWS},                   \
		{"security", FIELD_STRING, offsetof(body, options.security), 0, 15, 0,             \
			"Which system calls are open: strict, default, or browser where the "      \
			"operator offers it."},                                                    \
		{"skeleton", FIELD_STRING, offsetof(body, options.skeleton), 0,                    \
			TEMPLATE_WORKDIR_MAX - 1, 0,                                               \
			"Directory of the image that a new workspace is seeded from, once; "       \
			"/opt/sandbox-skel unless given, empty for none."},                        \
		{"start_image", FIELD_BOOLEAN, offsetof(body, options.start_image), 0, 0, 0,       \
			"Whether a sandbox runs the image's own program (entrypoint and command) " \
			"as a start command, named image. Needs the scope run too."},              \
		{"pinned", FIELD_BOOLEAN, offsetof(body, options.pinned), 0, 0, 0,                 \
			"Whether a sandbox keeps its version until it is reset, and does not get " \
			"the newest with its next start."},                                        \
	{                                                                                          \
		"languages", FIELD_STRING_LIST, offsetof(body, options.languages), 0,              \
			TEMPLATE_LANGUAGES_MAX, 0, "What can be run in it, for clients that ask."  \
	}

/* Options as the core has them, and what they point to. Large: made on the heap, of zeros. */
struct template_options_parts {
	struct template_options options;
	struct sandbox_body sandbox;
	const char *languages[TEMPLATE_LANGUAGES_MAX];
};

/* `object` is the body that was decoded into `body`. */
int template_options_body_decode(const json_t *object, const struct template_options_body *body,
	struct template_options_parts *ret_parts, struct err *err) must_check;

/* Adds to a template as JSON what its options are. */
void template_options_body_encode(json_t *template, const json_t *options);
