/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe a new sandbox (create, run, bench), and the request made of them. */
#pragma once

#include "base/err.h"
#include "cli/client.h"
#include "cli/option.h"
#include "cli/resolve.h"

#include <jansson.h>

struct create_spec {
	const char *id;
	const char *template;
	const char *project;
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
};

extern const struct option create_spec_options[];

/* The body of POST /v1/sandboxes: only what was given, so that the defaults stay the daemon's. */
int create_spec_body(const struct create_spec *spec, json_t **ret, struct err *err) must_check;

/* Adds the member `network` to a body, if there is anything to say. */
int create_spec_network(const char *mode, const struct option_list *allow,
	const struct option_list *secrets, json_t *body, struct err *err) must_check;

/* Makes the sandbox. ret_document (may be NULL) is a new reference to the answer. */
int create_spec_send(struct client *client, const struct create_spec *spec,
	char ret_id[RESOLVE_ID_LEN + 1], json_t **ret_document, struct err *err) must_check;

/* Puts "K=V" strings into an object; what names the option in a message. */
int create_spec_pairs(
	const struct option_list *list, const char *what, json_t **ret, struct err *err) must_check;
