/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own buffer is filled right from the descriptor: one copy in, one out. When the
 * descriptor is empty the connection sleeps until the poller sees more.
 */
#include "http/download.h"

#include "http/request_private.h"

#include <errno.h>
#include <microhttpd.h>
#include <unistd.h>

ssize_t download_pull(void *arg, uint64_t position, char *data, size_t size)
{
	struct request *req = arg;
	ssize_t n;

	(void)position;
	if (request_is_cut(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	do
		n = read(req->answer.fd, data, size);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	/* An end before the promised size must not look like the whole. */
	if (n == 0)
		return req->answer.size == UINT64_MAX ? MHD_CONTENT_READER_END_OF_STREAM
						      : MHD_CONTENT_READER_END_WITH_ERROR;
	if (errno != EAGAIN || !request_suspend(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	request_wake_when(req, req->answer.fd, EPOLLIN);
	return 0;
}
