/* SPDX-License-Identifier: Apache-2.0 */
#include "core/member/http_check.h"

#include "base/format.h"
#include "model/sandbox/member_spec.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define STATUS_LEN 10 /* "HTTP/1.1 2" */

bool http_check_ask(int fd, const char *path)
{
	char text[MEMBER_PATH_MAX + 64];
	size_t len = format_append(
		text, sizeof(text), 0, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);

	return send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* What came stays where it is: it may be a part of the line alone. */
enum http_check_answer http_check_look(int fd)
{
	char text[STATUS_LEN];
	ssize_t len = recv(fd, text, sizeof(text), MSG_DONTWAIT | MSG_PEEK);

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? HTTP_CHECK_NONE : HTTP_CHECK_BAD;
	if (len > 0 && len < STATUS_LEN)
		return HTTP_CHECK_NONE;
	return len == STATUS_LEN && memcmp(text, "HTTP/1.", 7) == 0 &&
			       (text[9] == '2' || text[9] == '3')
		       ? HTTP_CHECK_GOOD
		       : HTTP_CHECK_BAD;
}
