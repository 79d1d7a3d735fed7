/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent that listens relays to ports of its loopback (agent/link/port_forward.c). */
#include "agent/link/port_forward.h"
#include "listening_agent.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

static uint32_t answer_of(int sock)
{
	uint8_t answer[4];

	assert_int_equal(agent_stream_read(sock, answer, sizeof(answer), soon()), 0);
	return unpack_u32(&UNPACK_INIT(answer, sizeof(answer)));
}

static int dial(const struct listening_agent *agent, uint16_t port, uint32_t wait_ms)
{
	return agent_open(agent, &(struct proof_claim){PROOF_DIAL, port, wait_ms});
}

/* What the port gets; blocking. */
static int accept_one(int listener)
{
	struct pollfd waiting = {.fd = listener, .events = POLLIN};
	int conn;

	assert_int_equal(poll(&waiting, 1, DEADLINE_MS), 1);
	conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(conn >= 0);
	return conn;
}

static void it_says_whether_a_port_is_open(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), sock;

	sock = dial(agent, ntohs(address.sin_port), 0);
	assert_int_equal(answer_of(sock), 0);
	close(accept_one(listener));
	assert_closed(sock);
	close(listener);
	sock = dial(agent, ntohs(address.sin_port), 1000);
	assert_int_equal(answer_of(sock), ECONNREFUSED);
	assert_closed(sock);
}

/* Its queue is full, so it neither takes nor refuses another. */
static void a_port_that_takes_nothing_is_busy(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), fillers[8], sock;
	struct pollfd made;

	assert_int_equal(listen(listener, 0), 0);
	for (size_t i = 0; i < array_len(fillers); i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
	}
	made = (struct pollfd){.fd = fillers[array_len(fillers) - 1], .events = POLLOUT};
	assert_int_equal(poll(&made, 1, 0), 0);
	for (uint32_t wait_ms = 0; wait_ms <= 50; wait_ms += 50) {
		sock = dial(agent, ntohs(address.sin_port), wait_ms);
		assert_int_equal(answer_of(sock), ETIMEDOUT);
		assert_closed(sock);
	}
	for (size_t i = 0; i < array_len(fillers); i++)
		close(fillers[i]);
	close(listener);
}

/* Each end of file passes on its own, and no byte is lost before it. */
static void each_direction_ends_by_itself(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), sock, conn;
	char text[4];

	sock = dial(agent, ntohs(address.sin_port), 0);
	assert_int_equal(answer_of(sock), 0);
	conn = accept_one(listener);
	assert_int_equal(agent_stream_write(sock, "ping", 4, soon()), 0);
	shutdown(sock, SHUT_WR);
	assert_int_equal(agent_stream_read(conn, text, 4, soon()), 0);
	assert_memory_equal(text, "ping", 4);
	assert_int_equal(agent_stream_read(conn, text, 1, soon()), -ECONNRESET);
	assert_int_equal(agent_stream_write(conn, "pong", 4, soon()), 0);
	close(conn);
	assert_int_equal(agent_stream_read(sock, text, 4, soon()), 0);
	assert_memory_equal(text, "pong", 4);
	assert_closed(sock);
	close(listener);
}

#define MUCH (8u << 20)

static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 31 + at / 251);
}

/* Writes until the socket takes no more; how many. */
static size_t fill(int sock)
{
	uint8_t data[4096];
	size_t at = 0;

	while (at < MUCH) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = byte_at(at + i);
		n = send(sock, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd room = {.fd = sock, .events = POLLOUT};

			/* The agent may still take some. */
			if (poll(&room, 1, 100) == 0)
				break;
			continue;
		}
		assert_true(n > 0);
		at += (size_t)n;
	}
	return at;
}

static void assert_bytes(int sock, size_t len)
{
	uint8_t data[4096];

	for (size_t at = 0; at < len;) {
		size_t n = len - at < sizeof(data) ? len - at : sizeof(data);

		assert_int_equal(agent_stream_read(sock, data, n, soon()), 0);
		for (size_t i = 0; i < n; i++, at++)
			assert_int_equal(data[i], byte_at(at));
	}
}

/* Nobody reads: the sender waits, the agent goes on, and nothing is lost or changed. */
static void who_does_not_read_holds_up_only_the_sender(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), sock, conn;
	size_t down, up;

	sock = dial(agent, ntohs(address.sin_port), 0);
	assert_int_equal(answer_of(sock), 0);
	conn = accept_one(listener);
	down = fill(sock);
	up = fill(conn);
	assert_int_equal(agent_link_up(agent), 0);
	shutdown(sock, SHUT_WR);
	assert_bytes(conn, down);
	close(conn);
	assert_bytes(sock, up);
	assert_closed(sock);
	close(listener);
}

static void await_delivery(int sock)
{
	int left = 1;

	for (uint64_t until = soon(); left > 0; poll(NULL, 0, 1)) {
		assert_true(clock_steady_ms() < until);
		assert_int_equal(ioctl(sock, SIOCOUTQ, &left), 0);
	}
}

/* Wherever in a turn of the agent's loop the end is read, it is passed on. */
static void an_end_behind_any_number_of_chunks_is_passed_on(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address);
	uint8_t data[PORT_FORWARD_CHUNK];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = byte_at(i);
	for (size_t chunks = 0; chunks < 6; chunks++) {
		int sock = dial(agent, ntohs(address.sin_port), 0), conn;

		assert_int_equal(answer_of(sock), 0);
		conn = accept_one(listener);
		/* All of it, and the end, is there when the agent looks. */
		kill(agent->peer.agent, SIGSTOP);
		for (size_t i = 0; i < chunks; i++)
			assert_int_equal(agent_stream_write(sock, data, sizeof(data), soon()), 0);
		shutdown(sock, SHUT_WR);
		if (chunks < 5) /* as much as surely fits */
			await_delivery(sock);
		kill(agent->peer.agent, SIGCONT);
		for (size_t i = 0; i < chunks; i++)
			assert_bytes(conn, sizeof(data));
		assert_closed(conn);
		assert_closed(sock);
	}
	close(listener);
}

/* An app may answer and end without reading all: its answer arrives. */
static void an_answer_before_a_reset_arrives(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), sock, conn;
	struct pollfd sent;
	char text[6];

	sock = dial(agent, ntohs(address.sin_port), 0);
	assert_int_equal(answer_of(sock), 0);
	conn = accept_one(listener);
	assert_int_equal(agent_stream_write(sock, "unread", 6, soon()), 0);
	sent = (struct pollfd){.fd = conn, .events = POLLIN};
	assert_int_equal(poll(&sent, 1, DEADLINE_MS), 1);
	assert_int_equal(agent_stream_write(conn, "answer", 6, soon()), 0);
	close(conn);
	assert_int_equal(agent_stream_read(sock, text, 6, soon()), 0);
	assert_memory_equal(text, "answer", 6);
	assert_closed(sock);
	close(listener);
}

static void there_are_as_many_as_are_allowed(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), socks[PORT_FORWARD_MAX], sock;

	for (size_t i = 0; i < array_len(socks); i++) {
		socks[i] = dial(agent, ntohs(address.sin_port), 0);
		assert_int_equal(answer_of(socks[i]), 0);
		close(accept_one(listener));
	}
	/* Ours are open still: none of them is over. */
	sock = dial(agent, ntohs(address.sin_port), 0);
	assert_int_equal(answer_of(sock), EMFILE);
	assert_closed(sock);
	close(socks[0]);
	for (uint32_t answer = EMFILE; answer == EMFILE;) {
		sock = dial(agent, ntohs(address.sin_port), 0);
		answer = answer_of(sock);
		close(sock);
	}
	for (size_t i = 1; i < array_len(socks); i++)
		close(socks[i]);
	close(listener);
}

/* The daemon gives up: the connection that is being made goes too, and the loop does not turn. */
static void a_daemon_that_goes_away_leaves_nothing(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), sock, conn;

	sock = dial(agent, ntohs(address.sin_port), 0);
	assert_int_equal(answer_of(sock), 0);
	conn = accept_one(listener);
	close(sock);
	assert_closed(conn);
	close(listener);
	assert_int_equal(agent_link_up(agent), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_AGENT(it_says_whether_a_port_is_open),
		WITH_AGENT(a_port_that_takes_nothing_is_busy),
		WITH_AGENT(each_direction_ends_by_itself),
		WITH_AGENT(who_does_not_read_holds_up_only_the_sender),
		WITH_AGENT(an_end_behind_any_number_of_chunks_is_passed_on),
		WITH_AGENT(an_answer_before_a_reset_arrives),
		WITH_AGENT(there_are_as_many_as_are_allowed),
		WITH_AGENT(a_daemon_that_goes_away_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
