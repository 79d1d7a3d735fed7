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
	struct door {
		const char *chain_path, *key_path;
		struct certificate *certificate;
		struct terminator *terminator;
	} api, preview;
};

/* Refuses settings that contradict each other, and listeners whose clients would be overheard. */
int transport_check(const struct settings *settings, const struct listener *api,
	const struct listener *preview, struct err *err) must_check;

/* Once privileges are given up. The listeners speak TLS then, where they are to. */
int transport_open(const struct settings *settings, struct transport *transport,
	struct listener *api, struct listener *preview, struct err *err) must_check;

/* After what serves clients; accepts one that was never opened. */
void transport_close(struct transport *transport);

/* Reads all certificates again. One that cannot be used is logged, and the one before stays. */
void transport_reload(struct transport *transport);

/* Logs which certificates expire soon. */
void transport_remind(struct transport *transport);
