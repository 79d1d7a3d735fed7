/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that listens on 127.0.0.1, in a forked child, and ways to connect to it. */
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "driver/remote/agent_stream.h"
#include "test_agent_peer.h"
#include "wire/pack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct listening_agent {
	struct peer peer; /* its link is the one that was made last */
	struct proof_secret secret;
	struct sockaddr_in address;
};

/* A listener on a free port of 127.0.0.1. */
static inline int listen_somewhere(struct sockaddr_in *ret_address)
{
	socklen_t len = sizeof(*ret_address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*ret_address = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	/* What an agent that is stopped may be sent. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){1 << 20}, sizeof(int));
	assert_int_equal(bind(fd, (struct sockaddr *)ret_address, len), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_address, &len), 0);
	return fd;
}

static inline void agent_start(struct listening_agent *agent, uint64_t patience_ms)
{
	struct listener_config config = {.patience_ms = patience_ms};

	config.fd = listen_somewhere(&agent->address);
	assert_int_equal(proof_secret_new(&config.secret), 0);
	agent->secret = config.secret;
	peer_start_listening(&agent->peer, &config);
	close(config.fd);
}

static inline void agent_stop(struct listening_agent *agent)
{
	int status;

	kill(agent->peer.agent, SIGTERM);
	assert_int_equal(peer_wait(&agent->peer, &status), agent->peer.agent);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	peer_fini(&agent->peer);
}

static inline uint64_t soon(void)
{
	return clock_steady_ms() + DEADLINE_MS;
}

static inline int agent_connect(const struct listening_agent *agent)
{
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(agent_stream_connect(sock, (const struct sockaddr *)&agent->address,
				 sizeof(agent->address), soon()),
		0);
	return sock;
}

/* A proven stream. */
static inline int agent_open(const struct listening_agent *agent, const struct proof_claim *claim)
{
	int sock = agent_connect(agent);

	assert_int_equal(agent_stream_prove(sock, &agent->secret, claim, soon()), 0);
	return sock;
}

/* A new link, attached; the number of processes that the agent has. */
static inline size_t agent_link_up(struct listening_agent *agent)
{
	peer_drop_link(&agent->peer);
	agent->peer.link = agent_open(agent, &(struct proof_claim){.purpose = PROOF_LINK});
	return peer_attach_over(&agent->peer, NULL, 0);
}

/* The other end closes, having sent nothing more. */
static inline void assert_closed(int sock)
{
	uint8_t byte;
	int r = agent_stream_read(sock, &byte, 1, soon());

	assert_int_equal(r, -ECONNRESET);
	close(sock);
}

static inline int agent_setup(void **state)
{
	struct listening_agent *agent = mem_new(sizeof(*agent));

	agent_start(agent, LISTENER_PATIENCE_MS);
	*state = agent;
	return 0;
}

static inline int agent_teardown(void **state)
{
	agent_stop(*state);
	free(*state);
	return 0;
}

#define WITH_AGENT(test) cmocka_unit_test_setup_teardown(test, agent_setup, agent_teardown)
