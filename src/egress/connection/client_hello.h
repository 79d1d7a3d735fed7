/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the server name (SNI) from a TLS ClientHello, the last part of a connection that is not
 * encrypted.
 */
#pragma once

#include "model/sandbox/egress_rule.h"

#define CLIENT_HELLO_MAX (16384 + 5) /* one record */

/*
 * Looks at the first bytes of a connection. 1: the client asks for ret_name. 0: this is not TLS, or
 * it names no server. -EAGAIN: more bytes are needed. -EBADMSG: this is TLS, but in a form that
 * hides the name.
 */
int client_hello_read(const uint8_t *data, size_t len, char ret_name[EGRESS_NAME_MAX]) must_check;
