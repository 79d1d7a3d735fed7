/* SPDX-License-Identifier: Apache-2.0 */
/* The name that the first message of TLS asks for, which is the last thing in it that anybody can read. */
#pragma once

#include "model/egress_rule.h"

#define CLIENT_HELLO_MAX (16384 + 5) /* one record */

/*
 * Looks at the first bytes of a connection. 1: it asks for ret_name. 0: it is not TLS, or names nobody.
 * -EAGAIN: more bytes are needed. -EBADMSG: it is TLS, but in a form that hides the name.
 */
int client_hello_read(const uint8_t *data, size_t len, char ret_name[EGRESS_NAME_MAX]) must_check;
