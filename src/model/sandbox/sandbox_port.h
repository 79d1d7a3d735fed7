/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port of a sandbox that has a preview. In JSON it is its number, or, where it is not like the others, an object:
 *
 *   {"port": 3000, "public": true, "prefix": "keep"}
 *
 * Without `public` it is what the sandbox's `private` says. `prefix` is what becomes of the path in front of a request
 * by path: "strip" (most apps know nothing of it) or "keep" (apps that are told where they are, as by Vite's `base`).
 */
#pragma once

#include "model/sandbox/sandbox_record.h"

#define SANDBOX_PORTS_MAX 64

struct sandbox_port {
	uint16_t number;
	bool is_public; /* anybody may see it */
	bool keeps_prefix;
};

/* What is wrong with an array that is to hold ports, or NULL. */
const char *sandbox_port_check(const json_t *ports);

/*
 * Sets what `change` (an object as above, without the port) says of a port, which becomes one of them if it was not;
 * false if there are as many as may be.
 */
bool sandbox_port_change(json_t *ports, uint16_t number, const json_t *change) must_check;

/* The number of an entry. */
uint16_t sandbox_port_number(const json_t *entry);

/* The port of that number, or for 0 the first; false if there is none. */
bool sandbox_port_find(
	const struct sandbox_record *record, uint16_t number, struct sandbox_port *ret_port);

/* Says that a sandbox has no such port; returns -ENOENT. */
int sandbox_port_not_found(const char *id, uint16_t number, struct err *err);
