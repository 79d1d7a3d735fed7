/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/remote/agent_stream.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

/* After so long in silence the other host is asked whether it is still there. */
#define KEEP_IDLE_S 30
#define KEEP_EACH_S 10
#define KEEP_PROBES 3

/* 0 when the socket is ready, or failed, which the next call tells; or -errno. */
static int await(int sock, short events, uint64_t deadline_ms)
{
	struct pollfd ready = {.fd = sock, .events = events};

	for (;;) {
		uint64_t now_ms = clock_steady_ms();
		int n = poll(&ready, 1, deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0);

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Fails on a unix socket, where there is nothing to tune. */
static void tune(int sock)
{
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEP_IDLE_S}, sizeof(int));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPINTVL, &(int){KEEP_EACH_S}, sizeof(int));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPCNT, &(int){KEEP_PROBES}, sizeof(int));
}

int agent_stream_connect(
	int sock, const struct sockaddr *address, socklen_t len, uint64_t deadline_ms)
{
	int failed = 0, r;

	tune(sock);
	if (connect(sock, address, len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	r = await(sock, POLLOUT, deadline_ms);
	len = sizeof(failed);
	if (r == 0 && getsockopt(sock, SOL_SOCKET, SO_ERROR, &failed, &len) < 0)
		r = -errno;
	return r < 0 ? r : -failed;
}

int agent_stream_read(int sock, void *data, size_t len, uint64_t deadline_ms)
{
	uint8_t *at = data;

	while (len > 0) {
		ssize_t n = recv(sock, at, len, MSG_DONTWAIT);
		int r = 0;

		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno == EAGAIN)
			r = await(sock, POLLIN, deadline_ms);
		else if (n < 0 && errno != EINTR)
			r = -errno;
		if (r < 0)
			return r;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int agent_stream_write(int sock, const void *data, size_t len, uint64_t deadline_ms)
{
	const uint8_t *at = data;

	while (len > 0) {
		ssize_t n = send(sock, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		int r = 0;

		if (n < 0 && errno == EAGAIN)
			r = await(sock, POLLOUT, deadline_ms);
		else if (n < 0 && errno != EINTR)
			r = errno == EPIPE ? -ECONNRESET : -errno;
		if (r < 0)
			return r;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int agent_stream_prove(int sock, const struct proof_secret *secret, const struct proof_claim *claim,
	uint64_t deadline_ms)
{
	uint8_t greeting[PROOF_GREETING_LEN], ours[PROOF_CLAIM_LEN], answer[PROOF_ANSWER_LEN];
	int r = agent_stream_read(sock, greeting, sizeof(greeting), deadline_ms);

	if (r == 0)
		r = proof_make_claim(secret, greeting, claim, ours);
	if (r == 0)
		r = agent_stream_write(sock, ours, sizeof(ours), deadline_ms);
	if (r == 0)
		r = agent_stream_read(sock, answer, sizeof(answer), deadline_ms);
	if (r == 0)
		r = proof_check_answer(secret, greeting, ours, answer);
	return r;
}
