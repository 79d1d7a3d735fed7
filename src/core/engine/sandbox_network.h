/* SPDX-License-Identifier: Apache-2.0 */
/* The egress of a sandbox (egress/egress.h), through its life. */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "egress/egress.h"

/* The operator's limits: a sandbox has these by default, and never more. */
struct sandbox_egress_limits sandbox_network_limits(const struct engine *engine);

/* Opens the egress of a running sandbox, if its mode has one. life is held. */
int sandbox_network_open(struct sandbox *sandbox, struct err *err) must_check;

/* The same if the sandbox should have egress and has none. life is held. */
int sandbox_network_open_missing(struct sandbox *sandbox, struct err *err) must_check;

/*
 * Opens the egress before a process starts, if it is not open. This is not done when the sandbox
 * starts: one that only holds files needs no egress, and a create need not wait for it.
 */
int sandbox_network_need(struct sandbox *sandbox, struct err *err) must_check;

/* Writes down what was reached since the last time, so that it outlives the egress and the daemon. */
void sandbox_network_save(struct sandbox *sandbox);

/* Closes the egress, if there is one, and writes down what was reached. */
void sandbox_network_close(struct sandbox *sandbox);

/* Applies a changed `network` of the record at once. life is held. */
int sandbox_network_change(struct sandbox *sandbox, struct err *err) must_check;

/* It has another owner, whose secrets it may use from now on, and perhaps another network. life is held. */
void sandbox_network_give(struct sandbox *sandbox, bool is_other);

/* What a sandbox has reached, and what it was refused. */
struct sandbox_network_report {
	bool is_transparent; /* egress takes all TCP, not only connections to the proxy */
	struct sandbox_egress_counters counters;
	char (*reached)[EGRESS_NAME_MAX + 8]; /* rules that would allow what was reached */
	size_t reached_count;
	struct egress_denial *denials; /* newest first */
	size_t denial_count;
};

/* If the sandbox does not run or has no egress, there is nothing but what it reached before. The caller ends the
 * report. */
void sandbox_network_read(struct sandbox *sandbox, struct sandbox_network_report *ret_report);
void sandbox_network_report_fini(struct sandbox_network_report *report);

/* The same, the counters alone. */
void sandbox_network_count(struct sandbox *sandbox, struct sandbox_egress_counters *ret_counters);

/* Reads the certificate authorities for servers of secrets again. */
void sandbox_network_reload_trust(struct engine *engine);

/* Publishes an event for a refused connection. */
void sandbox_network_announce_denial(
	void *engine, const char *sandbox_id, const struct egress_denial *denial);
