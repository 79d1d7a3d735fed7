/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a member is well, asked over HTTP. What answers is in a sandbox and may be hostile: nobody waits for it, and
 * no more of it is looked at than the beginning.
 */
#pragma once

#include <stdbool.h>

enum http_check_answer {
	HTTP_CHECK_NONE, /* it may still come */
	HTTP_CHECK_GOOD,
	HTTP_CHECK_BAD, /* there is another one, or there will be none */
};

/* Sends the request over a stream that does not block. False: it cannot be sent. */
bool http_check_ask(int fd, const char *path);

/* What has come until now; it may be asked again. */
enum http_check_answer http_check_look(int fd);
