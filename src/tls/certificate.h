/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate that a listener shows, with its key, from two PEM files. It can be read again while it is in use:
 * connections that begin then show the new one, and those that are open go on with theirs.
 *
 * The files are read by whoever the process is at that time. The daemon opens them after it gave up its privileges,
 * also at its start: a key that only root can read is refused at once, and not when it has been renewed.
 */
#pragma once

#include "base/err.h"

#include <openssl/types.h>
#include <stdint.h>

#define CERTIFICATE_PIN_MAX 64

struct certificate;

/* `chain_path`: the certificate and those between it and its root. Both strings are borrowed. */
int certificate_open(const char *chain_path, const char *key_path,
	struct certificate **ret_certificate, struct err *err) must_check;
void certificate_close(struct certificate *certificate);

/* Reads the files again. On failure the one before stays. */
int certificate_reload(struct certificate *certificate, struct err *err) must_check;

/* The server's side of a new connection over a socket, which stays the caller's; NULL for want of memory. Any thread. */
SSL *certificate_accept(struct certificate *certificate, int sock);

/* Days until it expires; less than 0 once it has. */
int certificate_days_left(struct certificate *certificate);

/* Its public key as libcurl takes it ("sha256//..."), for clients that can read it from us. */
void certificate_pin(struct certificate *certificate, char pin[CERTIFICATE_PIN_MAX]);
