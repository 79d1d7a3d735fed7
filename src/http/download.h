/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor on its way out. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define DOWNLOAD_BLOCK (256u * 1024)

/* A content reader of libmicrohttpd: fills data from the request's descriptor. */
ssize_t download_pull(void *arg, uint64_t position, char *data, size_t size);
