/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets to an agent that listens (agent/link/listener.c), and whom the daemon takes for one
 * (driver/remote/agent_stream.c).
 */
#include "listening_agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>

static const struct proof_claim link_claim = {.purpose = PROOF_LINK};

static void a_daemon_with_the_secret_gets_a_link(void **state)
{
	struct listening_agent *agent = *state;
	struct peer_result result;

	assert_int_equal(agent_link_up(agent), 0);
	peer_run(&agent->peer, 1, "echo here", &result);
	peer_assert_text(&result.out, "here\n");
	peer_result_fini(&result);
}

static void a_new_link_replaces_the_one_before(void **state)
{
	struct listening_agent *agent = *state;
	struct peer_result result;
	int old;

	assert_int_equal(agent_link_up(agent), 0);
	peer_result_init(&result);
	peer_shell(&agent->peer, 1, 0, "echo begun; exec sleep 1000");
	peer_wait_for_text(&agent->peer, &result, "begun");
	peer_result_fini(&result);
	old = take_fd(&agent->peer.link);
	assert_int_equal(agent_link_up(agent), 1);
	assert_closed(old);
	peer_run(&agent->peer, 2, "echo here", &result);
	peer_assert_text(&result.out, "here\n");
	peer_result_fini(&result);
}

/* It gets no word, and the link that there is goes on. */
static void a_wrong_secret_gets_nothing(void **state)
{
	struct listening_agent *agent = *state;
	struct proof_secret wrong = agent->secret;
	struct peer_result result;
	int sock;

	assert_int_equal(agent_link_up(agent), 0);
	for (size_t i = 0; i < 2 * LISTENER_WAITING_MAX; i++) {
		wrong.bytes[i % PROOF_SECRET_LEN] ^= 0x40;
		sock = agent_connect(agent);
		assert_int_equal(
			agent_stream_prove(sock, &wrong, &link_claim, soon()), -ECONNRESET);
		close(sock);
		wrong.bytes[i % PROOF_SECRET_LEN] ^= 0x40;
	}
	peer_run(&agent->peer, 1, "echo here", &result);
	peer_assert_text(&result.out, "here\n");
	peer_result_fini(&result);
}

/* Every byte of an earlier connection, sent again. */
static void what_was_heard_proves_nothing_again(void **state)
{
	uint8_t greeting[PROOF_GREETING_LEN], claim[PROOF_CLAIM_LEN], answer[PROOF_ANSWER_LEN];
	struct listening_agent *agent = *state;
	int sock = agent_connect(agent);

	assert_int_equal(agent_stream_read(sock, greeting, sizeof(greeting), soon()), 0);
	assert_int_equal(proof_make_claim(&agent->secret, greeting, &link_claim, claim), 0);
	assert_int_equal(agent_stream_write(sock, claim, sizeof(claim), soon()), 0);
	assert_int_equal(agent_stream_read(sock, answer, sizeof(answer), soon()), 0);
	close(sock);
	sock = agent_connect(agent);
	assert_int_equal(agent_stream_read(sock, greeting, sizeof(greeting), soon()), 0);
	assert_int_equal(agent_stream_write(sock, claim, sizeof(claim), soon()), 0);
	assert_closed(sock);
}

static void garbage_is_cut_off(void **state)
{
	static const char *const garbage[] = {
		"GET / HTTP/1.1\r\nHost: agent\r\nUser-Agent: somebody who is not the "
		"daemon\r\n\r\n",
		"SANDLOT1SANDLOT1SANDLOT1SANDLOT1SANDLOT1SANDLOT1SANDLOT1SANDLOT1SANDLOT1",
	};
	struct listening_agent *agent = *state;
	uint8_t greeting[PROOF_GREETING_LEN];

	for (size_t i = 0; i < array_len(garbage); i++) {
		int sock = agent_connect(agent);

		assert_int_equal(agent_stream_read(sock, greeting, sizeof(greeting), soon()), 0);
		assert_int_equal(
			agent_stream_write(sock, garbage[i], strlen(garbage[i]), soon()), 0);
		assert_closed(sock);
	}
	assert_int_equal(agent_link_up(agent), 0);
}

/* Byte by byte it is the same claim; and what is sent behind it at once is not lost. */
static void a_claim_may_come_in_pieces(void **state)
{
	uint8_t greeting[PROOF_GREETING_LEN], claim[PROOF_CLAIM_LEN], answer[PROOF_ANSWER_LEN];
	struct listening_agent *agent = *state;
	int sock = agent_connect(agent);

	assert_int_equal(agent_stream_read(sock, greeting, sizeof(greeting), soon()), 0);
	assert_int_equal(proof_make_claim(&agent->secret, greeting, &link_claim, claim), 0);
	for (size_t i = 0; i < sizeof(claim); i++)
		assert_int_equal(agent_stream_write(sock, claim + i, 1, soon()), 0);
	agent->peer.link = sock;
	peer_send_u32(&agent->peer, AGENT_ATTACH, 0, AGENT_VERSION);
	assert_int_equal(agent_stream_read(sock, answer, sizeof(answer), soon()), 0);
	assert_int_equal(proof_check_answer(&agent->secret, greeting, claim, answer), 0);
	agent->peer.link = -1;
	close(sock);
	assert_int_equal(agent_link_up(agent), 0);
}

/* Those who say nothing, or half of it, are cut when their time is over, and nothing else is. */
static void the_slow_are_cut_off(void **state)
{
	uint8_t greeting[PROOF_GREETING_LEN], claim[PROOF_CLAIM_LEN];
	struct listening_agent agent;
	struct peer_result result;
	int silent, half, channel;

	(void)state;
	agent_start(&agent, 2000);
	assert_int_equal(agent_link_up(&agent), 0);
	silent = agent_connect(&agent);
	half = agent_connect(&agent);
	/* One that has proven itself must say what it is for in the same time. */
	channel = agent_open(&agent, &(struct proof_claim){.purpose = PROOF_CHANNEL});
	assert_int_equal(agent_stream_read(silent, greeting, sizeof(greeting), soon()), 0);
	assert_int_equal(agent_stream_read(half, greeting, sizeof(greeting), soon()), 0);
	assert_int_equal(proof_make_claim(&agent.secret, greeting, &link_claim, claim), 0);
	assert_int_equal(agent_stream_write(half, claim, sizeof(claim) - 1, soon()), 0);
	assert_closed(silent);
	assert_closed(half);
	assert_closed(channel);
	peer_run(&agent.peer, 1, "echo here", &result);
	peer_assert_text(&result.out, "here\n");
	peer_result_fini(&result);
	agent_stop(&agent);
}

/* Strangers who hold all places: the one that waits longest goes, the daemon is served. */
static void many_strangers_do_not_keep_the_daemon_out(void **state)
{
	struct listening_agent *agent = *state;
	uint8_t greeting[PROOF_GREETING_LEN];
	int strangers[LISTENER_WAITING_MAX + 8];

	for (size_t i = 0; i < array_len(strangers); i++) {
		strangers[i] = agent_connect(agent);
		assert_int_equal(
			agent_stream_read(strangers[i], greeting, sizeof(greeting), soon()), 0);
	}
	for (size_t i = 0; i < array_len(strangers) - LISTENER_WAITING_MAX; i++)
		assert_closed(strangers[i]);
	assert_int_equal(agent_link_up(agent), 0);
	for (size_t i = array_len(strangers) - LISTENER_WAITING_MAX + 1; i < array_len(strangers);
		i++) {
		struct pollfd open = {.fd = strangers[i], .events = POLLIN};

		assert_int_equal(poll(&open, 1, 0), 0);
		close(strangers[i]);
	}
	assert_closed(strangers[array_len(strangers) - LISTENER_WAITING_MAX]);
}

/* --- whom the daemon takes for the agent --- */

/* Plays an agent with another secret, or none: what it says is up to the caller. */
static int prove_to(const uint8_t *says, size_t len, bool ends)
{
	struct proof_secret secret;
	int pair[2], r;

	assert_int_equal(proof_secret_new(&secret), 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(fd_write_full(pair[1], says, len), 0);
	if (ends)
		shutdown(pair[1], SHUT_WR);
	r = agent_stream_prove(
		pair[0], &secret, &link_claim, ends ? soon() : clock_steady_ms() + 50);
	close(pair[0]);
	close(pair[1]);
	return r;
}

static void an_impostor_is_found_out(void **state)
{
	uint8_t says[PROOF_GREETING_LEN + PROOF_ANSWER_LEN] = {0};

	(void)state;
	assert_int_equal(proof_greet(says), 0);
	assert_int_equal(prove_to(says, sizeof(says), true), -EACCES);
	assert_int_equal(prove_to(says, sizeof(says) - 1, true), -ECONNRESET);
	assert_int_equal(prove_to(says, sizeof(says) - 1, false), -ETIMEDOUT);
	assert_int_equal(prove_to(says, 0, false), -ETIMEDOUT);
	memcpy(says, "HTTP/1.1", 8);
	assert_int_equal(prove_to(says, sizeof(says), true), -EPROTO);
}

/* --- channels --- */

static struct buf stat_request(void)
{
	struct buf first = BUF_INIT(256);

	frame_put_header(&first, AGENT_FILE, 0, 1 + 4 + 4 + 1);
	pack_u8(&first, AGENT_FILE_STAT);
	pack_u32(&first, 0);
	pack_str(&first, "/");
	return first;
}

static void a_channel_begins_with_its_first_frame_in_any_pieces(void **state)
{
	const struct proof_claim claim = {.purpose = PROOF_CHANNEL};
	struct listening_agent *agent = *state;
	auto_(buf_fini) struct buf first = stat_request();
	struct peer_answer answer;

	for (size_t piece = 1; piece <= first.len; piece++) {
		int channel = agent_open(agent, &claim);

		for (size_t at = 0; at < first.len; at += piece)
			assert_int_equal(
				agent_stream_write(channel, first.data + at,
					first.len - at < piece ? first.len - at : piece, soon()),
				0);
		assert_int_equal(fcntl(channel, F_SETFL, 0), 0);
		assert_int_equal(peer_errnum(channel, &answer), 0);
		assert_int_equal(answer.answer.kind, AGENT_FILE_DIRECTORY);
		assert_true(peer_at_end(channel));
		close(channel);
	}
}

static void a_first_frame_beyond_its_bounds_is_cut_off(void **state)
{
	static const uint32_t lengths[] = {
		AGENT_CHANNEL_FIRST_MAX - FRAME_HEADER_LEN + 1, UINT32_MAX};
	const struct proof_claim claim = {.purpose = PROOF_CHANNEL};
	struct listening_agent *agent = *state;

	for (size_t i = 0; i < array_len(lengths); i++) {
		int channel = agent_open(agent, &claim);
		struct buf header = BUF_INIT(FRAME_HEADER_LEN);

		frame_put_header(&header, AGENT_FILE, 0, lengths[i]);
		assert_int_equal(agent_stream_write(channel, header.data, header.len, soon()), 0);
		buf_fini(&header);
		assert_closed(channel);
	}
	assert_int_equal(agent_link_up(agent), 0);
}

/* Whether the agent's list of listeners has this port. */
static bool is_listed(const struct listening_agent *agent, uint16_t port)
{
	auto_(buf_fini) struct buf first = BUF_INIT(64), list = BUF_INIT(64 * 1024);
	int channel = agent_open(agent, &(struct proof_claim){.purpose = PROOF_CHANNEL});
	bool found = false;
	struct unpack in;
	uint32_t count;
	uint8_t byte;

	frame_put_header(&first, AGENT_PORTS, 0, 8);
	pack_u64(&first, 0);
	assert_int_equal(agent_stream_write(channel, first.data, first.len, soon()), 0);
	while (agent_stream_read(channel, &byte, 1, soon()) == 0)
		buf_append(&list, &byte, 1);
	close(channel);
	in = UNPACK_INIT(list.data, list.len);
	(void)unpack_u64(&in);
	assert_int_equal(unpack_u8(&in), 1);
	(void)unpack_u8(&in);
	count = unpack_u32(&in);
	for (uint32_t i = 0; i < count; i++) {
		size_t len;

		for (int part = 0; part < 4; part++)
			(void)unpack_u32(&in); /* the address */
		found |= unpack_u32(&in) == port;
		(void)unpack_u32(&in);
		(void)unpack_u32(&in);
		(void)unpack_bytes(&in, &len);
	}
	assert_true(unpack_done(&in));
	return found;
}

/* It is nothing that the sandbox serves. */
static void the_agent_s_own_port_is_not_listed(void **state)
{
	struct listening_agent *agent = *state;
	struct sockaddr_in address;
	int listener = listen_somewhere(&address);

	assert_true(is_listed(agent, ntohs(address.sin_port)));
	assert_false(is_listed(agent, ntohs(agent->address.sin_port)));
	close(listener);
}

/* --- the end --- */

/* As a container's engine does: commands are told, and waited for. */
static void sigterm_ends_it_with_its_commands(void **state)
{
	struct listening_agent agent;
	struct peer_result result;
	char *dir = peer_make_temp();
	char *line = mem_printf("trap 'echo told >%s/told; exit' TERM; echo ready; "
				"while :; do sleep 0.01; done",
		dir);
	char *path = mem_printf("%s/told", dir);

	(void)state;
	agent_start(&agent, LISTENER_PATIENCE_MS);
	assert_int_equal(agent_link_up(&agent), 0);
	peer_result_init(&result);
	peer_shell(&agent.peer, 1, 0, line);
	peer_wait_for_text(&agent.peer, &result, "ready");
	peer_result_fini(&result);
	agent_stop(&agent);
	assert_int_equal(access(path, F_OK), 0);
	peer_remove_temp(dir);
	free(line);
	free(path);
}

/* A unix socket is as good, and one that was left there is no hindrance. */
static void it_listens_on_a_path_or_a_port(void **state)
{
	static const char *const wrong[] = {"", "0", "65536", "70000000000000000000", "x", "80x",
		"-1", " 80", "/nonexistent/agent.sock"};
	struct listening_agent agent;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char *dir = peer_make_temp();
	struct stat stat;
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < array_len(wrong); i++)
		assert_true(listener_open(wrong[i], &fd) < 0);
	assert_int_equal(fd, -1);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent.sock", dir);
	for (int i = 0; i < 2; i++) {
		struct listener_config config = {.patience_ms = LISTENER_PATIENCE_MS};

		assert_int_equal(listener_open(address.sun_path, &config.fd), 0);
		assert_int_equal(lstat(address.sun_path, &stat), 0);
		assert_int_equal(stat.st_mode & 0777, 0600);
		assert_int_equal(proof_secret_new(&config.secret), 0);
		agent.secret = config.secret;
		peer_start_listening(&agent.peer, &config);
		close(config.fd);
		agent.peer.link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_int_equal(agent_stream_connect(agent.peer.link, (struct sockaddr *)&address,
					 sizeof(address), soon()),
			0);
		assert_int_equal(
			agent_stream_prove(agent.peer.link, &agent.secret, &link_claim, soon()), 0);
		assert_int_equal(peer_attach_over(&agent.peer, NULL, 0), 0);
		agent_stop(&agent);
	}
	peer_remove_temp(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_AGENT(a_daemon_with_the_secret_gets_a_link),
		WITH_AGENT(a_new_link_replaces_the_one_before),
		WITH_AGENT(a_wrong_secret_gets_nothing),
		WITH_AGENT(what_was_heard_proves_nothing_again),
		WITH_AGENT(garbage_is_cut_off),
		WITH_AGENT(a_claim_may_come_in_pieces),
		cmocka_unit_test(the_slow_are_cut_off),
		WITH_AGENT(many_strangers_do_not_keep_the_daemon_out),
		cmocka_unit_test(an_impostor_is_found_out),
		WITH_AGENT(a_channel_begins_with_its_first_frame_in_any_pieces),
		WITH_AGENT(a_first_frame_beyond_its_bounds_is_cut_off),
		WITH_AGENT(the_agent_s_own_port_is_not_listed),
		cmocka_unit_test(sigterm_ends_it_with_its_commands),
		cmocka_unit_test(it_listens_on_a_path_or_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
