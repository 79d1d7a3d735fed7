/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How clients reach the two listeners: by TLS where a certificate is set for it, and else by plain HTTP, which is for
 * clients on this machine unless the operator says otherwise.
 */
#pragma once

#include "daemon/settings.h"
#include "http/listener.h"
#include "tls/certificate.h"

struct transport {
	struct endpoint {
		const char *chain_path, *key_path;
		struct certificate *certificate;
		struct terminator *terminator;
	} api, preview;
};

/* Listens on the address that a flag ("--api-bind") names; if another program has it, that flag is the remedy. */
int transport_listen(const char *address, const char *flag, struct listener *ret_listener,
	struct err *err) must_check;

/* Refuses settings that contradict each other, and listeners whose clients would be overheard. */
int transport_check(const struct settings *settings, const struct listener *api,
	const struct listener *preview, struct err *err) must_check;

/* Once privileges are given up. The listeners speak TLS then, where they are to; max_crowd as of terminator_open(). */
int transport_open(const struct settings *settings, struct transport *transport,
	struct listener *api, struct listener *preview, unsigned max_crowd, struct err *err)
	must_check;

/* After what serves clients; accepts one that was never opened. */
void transport_close(struct transport *transport);

/* Reads all certificates again. One that cannot be used is logged, and the one before stays. */
void transport_reload(struct transport *transport);

/* Logs which certificates expire soon. */
void transport_remind(struct transport *transport);
