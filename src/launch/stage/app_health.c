/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/app_health.h"

#include "base/clock.h"
#include "base/fd.h"
#include "core/preview/preview.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS  10000 /* a first page may be made when it is asked for */
#define STATUS_LEN 12	 /* "HTTP/1.1 200" */

static bool wait_for(int fd, short what, uint64_t until_ms)
{
	struct pollfd watched = {.fd = fd, .events = what};
	uint64_t now_ms = clock_steady_ms();

	return now_ms < until_ms && poll(&watched, 1, (int)(until_ms - now_ms)) > 0;
}

bool app_health_listens(struct sandbox *sandbox, uint16_t port)
{
	auto_fd int fd = -1;
	struct err ignored;

	return preview_connect(sandbox, port, &fd, &ignored) == 0;
}

int app_health_ask(struct sandbox *sandbox, uint16_t port, const char *path)
{
	uint64_t until_ms = clock_steady_ms() + ANSWER_MS;
	auto_fd int fd = -1;
	struct err ignored;
	char request[512], answer[STATUS_LEN + 1] = "";
	size_t got = 0;
	int status;

	if (preview_connect(sandbox, port, &fd, &ignored) < 0)
		return APP_HEALTH_NONE;
	snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: localhost:%u\r\nAccept: */*\r\nConnection: close\r\n\r\n",
		path, port);
	if (!wait_for(fd, POLLOUT, until_ms) ||
		send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		return APP_HEALTH_NONE;
	while (got < STATUS_LEN && wait_for(fd, POLLIN, until_ms)) {
		ssize_t n = recv(fd, answer + got, STATUS_LEN - got, 0);

		if (n <= 0 && !(n < 0 && errno == EAGAIN))
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	return sscanf(answer, "HTTP/1.%*1d %3d", &status) == 1 && status >= 100 ? status
										: APP_HEALTH_NONE;
}
