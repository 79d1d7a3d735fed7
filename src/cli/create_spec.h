/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe a new sandbox (create, run, bench), and the request made of them. */
#pragma once

#include "base/err.h"
#include "cli/dependency_spec.h"
#include "cli/option.h"
#include "cli/remote/client.h"
#include "cli/remote/resolve.h"

#include <jansson.h>

struct create_spec {
	const char *id;
	const char *name;
	const char *template;
	const char *snapshot;
	const char *project, *session;
	const char *cpu;
	const char *memory;
	const char *disk;
	struct option_number pids;
	struct option_list env;
	struct option_list ports;
	struct option_list labels;
	const char *network;
	struct option_list allow;
	struct option_list secrets;
	struct option_number idle_timeout;
	struct option_number lifetime;
	bool is_public;
	const char *start;
	bool has_start_env;
	struct option_list members;
	struct dependency_spec dependencies;
};

extern const struct option create_spec_options[];

/* The body of POST /v1/sandboxes: only what was given, so that the defaults stay the daemon's. */
int create_spec_body(const struct create_spec *spec, json_t **ret, struct err *err) must_check;

/* Adds the member `network` to a body, if there is anything to say. */
int create_spec_network(const char *mode, const struct option_list *allow,
	const struct option_list *secrets, json_t *body, struct err *err) must_check;

/* Adds a time limit if one is given. The API counts whole seconds: less would silently become none. */
int create_spec_limit(json_t *body, const char *field, const struct option_number *number,
	struct err *err) must_check;

/* Adds to the remedy of a creation that failed which template may have been meant, if its own is not there. */
void create_spec_suggest(struct client *client, const struct create_spec *spec, struct err *err);

/* Makes the sandbox, which may be `creating` then. *ret_document is a new reference to the answer. */
int create_spec_send(struct client *client, const struct create_spec *spec,
	char ret_id[RESOLVE_ID_LEN + 1], json_t **ret_document, struct err *err) must_check;

/*
 * Waits until a sandbox that was sent for is made, and shows how far its image is. *document is replaced by what it
 * is then. One that cannot be made is an error, and is still there.
 */
int create_spec_await(struct client *client, json_t **document, struct err *err) must_check;

/* Waits until its packages are installed, if any were asked for. */
int create_spec_await_packages(struct client *client, const struct create_spec *spec,
	const char *id, struct err *err) must_check;

/* Says on standard error what the daemon warns of. */
void create_spec_warn(const json_t *sandbox);

/* Puts "K=V" strings into an object; what names the option in a message. */
int create_spec_pairs(
	const struct option_list *list, const char *what, json_t **ret, struct err *err) must_check;
