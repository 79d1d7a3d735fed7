/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a connection to an agent that listens, as listener.c takes it. The first byte says who
 * sends the rest: an even one a stranger, whom nothing may come of; an odd one somebody with the
 * secret, whose claim has the next bytes for its fields and a right MAC, before what is left.
 */
#include "agent/link/listener.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct listener listener;

static struct {
	unsigned taken;
	enum proof_purpose purpose;
	size_t first_len; /* of a channel's first frame */
} seen;

static void take(int fd, enum proof_purpose purpose)
{
	seen.taken++;
	seen.purpose = purpose;
	close(fd);
}

static void take_link(void *context, int fd)
{
	assert(context == &listener);
	take(fd, PROOF_LINK);
}

static void take_channel(void *context, int fd, const struct frame *first)
{
	uint8_t *copy = mem_new(first->len + 1); /* all of it is there to be read */

	assert(context == &listener);
	assert(first->len <= AGENT_CHANNEL_FIRST_MAX - FRAME_HEADER_LEN);
	memcpy(copy, first->payload, first->len);
	free(copy);
	seen.first_len = FRAME_HEADER_LEN + first->len;
	take(fd, PROOF_CHANNEL);
}

static void take_dial(void *context, int fd, const struct proof_claim *claim)
{
	assert(context == &listener);
	assert(claim->purpose == PROOF_DIAL && claim->port > 0);
	take(fd, PROOF_DIAL);
}

static const struct listener_takers takers = {take_link, take_channel, take_dial};

/* Strangers' bytes, or a claim that is right in form, with its MAC. */
static size_t make_claim(const uint8_t *data, size_t size, const uint8_t *greeting, uint8_t *claim)
{
	struct proof_claim fields = {0};
	size_t used = size < 7 ? size : 7;
	uint8_t bytes[7] = {0};

	memcpy(bytes, data, used);
	fields.purpose = bytes[0];
	fields.port = (uint16_t)(bytes[1] | bytes[2] << 8);
	memcpy(&fields.wait_ms, bytes + 3, 4);
	assert(proof_make_claim(&listener.secret, greeting, &fields, claim) == 0);
	return used;
}

static void send_all(int fd, const uint8_t *data, size_t len)
{
	while (len > 0) {
		size_t n = len < 1000 ? len : 1000;
		ssize_t sent = send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		/* It was closed, or given away. */
		if (sent < 0)
			return;
		listener_receive(&listener, listener.last_id);
		data += sent;
		len -= (size_t)sent;
	}
}

static bool is_waiting(void)
{
	for (size_t i = 0; i < LISTENER_WAITING_MAX; i++) {
		if (listener.conns[i].fd >= 0)
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct listener_config config = {.fd = -1, .patience_ms = 0};
	uint8_t greeting[PROOF_GREETING_LEN], claim[PROOF_CLAIM_LEN];
	int pair[2], epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	bool has_secret = size > 0 && data[0] % 2 == 1;

	seen.taken = 0;
	memset(&config.secret, 7, sizeof(config.secret));
	assert(epoll_fd >= 0);
	assert(listener_init(&listener, epoll_fd, &config, &takers, &listener) == 0);
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	listener_greet(&listener, pair[1]);
	assert(fd_read_full(pair[0], greeting, sizeof(greeting)) == 0);
	data += size > 0;
	size -= size > 0;
	if (has_secret) {
		size_t used = make_claim(data, size, greeting, claim);

		data += used;
		size -= used;
		send_all(pair[0], claim, sizeof(claim));
		for (int i = 0; i < PROOF_CLAIM_LEN; i++)
			listener_receive(&listener, listener.last_id);
	}
	send_all(pair[0], data, size);
	/* What is left of it in the socket, in as many turns as there may be. */
	for (int i = 0; i < 64; i++)
		listener_receive(&listener, listener.last_id);
	assert(seen.taken <= has_secret);
	if (seen.taken && seen.purpose == PROOF_CHANNEL)
		assert(seen.first_len <= size);
	close(pair[0]);
	for (int i = 0; i < 64; i++)
		listener_receive(&listener, listener.last_id);
	assert(!is_waiting());
	free(listener.conns);
	close(epoll_fd);
	return 0;
}
