/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper that answers as many requests as the file `requests` beside the data directory says, each with success, and
 * then ends; also when it is asked to. A second number there is added to its version, and then it takes requests of one
 * length alone, as that of an earlier release does. The file `asked` there has a byte for each request. sandlotd starts it as its keeper, with a listener as descriptor 3.
 */
#include "wire/keeper.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTEN_FD   3
#define CLIENTS_MAX 64

/* Bytes of a request of version 22. Whoever changes this number leaves people with a keeper that nobody can end. */
#define EARLIER_LEN 408

static long other_version;
static FILE *asked;

static long read_count(const char *data_dir)
{
	char path[PATH_MAX];
	long count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/../requests", data_dir);
	file = fopen(path, "re");
	if (file) {
		(void)!fscanf(file, "%ld %ld", &count, &other_version);
		fclose(file);
	}
	snprintf(path, sizeof(path), "%s/../asked", data_dir);
	asked = fopen(path, "we");
	return count;
}

/* Whether there was a request. */
static bool answer(int conn)
{
	const struct keeper_answer answer = {
		.version = KEEPER_VERSION + (unsigned)other_version, .wait_status = -1};
	struct keeper_request request;
	ssize_t n = recv(conn, &request, sizeof(request), MSG_TRUNC);

	if (n <= 0 || (other_version != 0 && n != EARLIER_LEN) ||
		send(conn, &answer, sizeof(answer), MSG_NOSIGNAL) <= 0)
		return false;
	if (request.kind == KEEPER_SHUTDOWN)
		_exit(0);
	if (asked) {
		(void)!fputc('.', asked);
		(void)!fflush(asked);
	}
	return true;
}

int main(int argc, char *argv[])
{
	struct pollfd fds[CLIENTS_MAX] = {{.fd = LISTEN_FD, .events = POLLIN}};
	nfds_t count = 1;
	long left = argc > 1 ? read_count(argv[1]) : 0;

	while (left > 0 && poll(fds, count, -1) > 0) {
		for (nfds_t i = 1; i < count && left > 0; i++) {
			if (!fds[i].revents)
				continue;
			if (answer(fds[i].fd)) {
				left--;
			} else {
				close(fds[i].fd);
				fds[i].fd = -1;
			}
		}
		if (left > 0 && fds[0].revents && count < CLIENTS_MAX)
			fds[count++] = (struct pollfd){
				.fd = accept(LISTEN_FD, NULL, NULL), .events = POLLIN};
	}
	return 1;
}
