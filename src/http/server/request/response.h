/* SPDX-License-Identifier: Apache-2.0 */
/* How the answer of a request goes out: through libmicrohttpd, or past it. */
#pragma once

#include <stdbool.h>

struct MHD_Connection;
struct request;

/* Gives the answer to the library; only when it expects one. */
bool response_queue(struct request *req, struct MHD_Connection *connection);

/*
 * Writes the answer to the socket, past the library, which takes none in the middle of a body. The
 * sending side is shut afterwards. False if the answer is no plain document.
 */
bool response_write(struct request *req, int sock);
