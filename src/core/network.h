/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of a sandbox (egress/egress.h), through its life. */
#pragma once

#include "core/sandbox.h"
#include "egress/egress.h"

/* Whether a sandbox with such a `network` has one. */
bool network_leads_out(const json_t *network);

/* What the operator lets every sandbox have, and none have more of. */
struct sluice_limits network_limits(const struct engine *engine);

/* Opens it for one that runs, if its mode asks for one. life is held. */
int network_open(struct sandbox *sandbox, struct err *err) must_check;

/* The same for one that should have one and does not. life is held. */
int network_open_missing(struct sandbox *sandbox, struct err *err) must_check;

/*
 * A process is to be started: opens it now, if that was not done before. Not when the sandbox starts:
 * one that only holds files needs none, and a create need not wait for it.
 */
int network_need(struct sandbox *sandbox, struct err *err) must_check;

/* Closes it, if there is one. */
void network_close(struct sandbox *sandbox);

/* Its record has another `network`: what runs follows it at once. life is held. */
int network_change(struct sandbox *sandbox, struct err *err) must_check;

/* A reference to its sluice; NULL if it does not run or has no way out. */
struct sluice *network_sluice(struct sandbox *sandbox);

/* Whether all TCP leads out, or only what asks for a proxy. */
bool network_is_transparent(struct sandbox *sandbox);

/* Reads again whom the servers of secrets may have their certificates from. */
void network_reload_trust(struct engine *engine);

/* Events of what was refused. */
void network_announce_denial(
	void *engine, const char *sandbox_id, const struct egress_denial *denial);
