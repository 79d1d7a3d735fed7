/* SPDX-License-Identifier: Apache-2.0 */
/* What listens, and who: lines of the kernel's list, and an agent that looks at sockets of this test. */
#include "agent/process/port_scan.h"

#include "base/fd.h"
#include "test_agent_peer.h"
#include "wire/pack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void lines_of_the_kernel_are_understood(void **state)
{
	static const struct {
		const char *line, *address;
		unsigned port;
		uint64_t inode;
	} cases[] = {
		{"   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  "
		 "1000        "
		 "0 12345 1 0000000000000000 100 0 0 10 0                     ",
			"::ffff:127.0.0.1", 3000, 12345},
		{"1234: 00000000:FFFF 00000000:0000 0A 00000000:00000001 00:00000000 00000000     "
		 "0        "
		 "0 18446744073709551615 1 0000000000000000 100 0 0 10 0",
			"::ffff:0.0.0.0", 65535, UINT64_MAX},
		{"   1: 00000000000000000000000001000000:1F90 "
		 "00000000000000000000000000000000:0000 0A "
		 "00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0",
			"::1", 8080, 7},
		{"   1: 0000000000000000FFFF00000100007F:0050 "
		 "00000000000000000000000000000000:0000 0A "
		 "00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0",
			"::ffff:127.0.0.1", 80, 7},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		char text[INET6_ADDRSTRLEN];
		struct scanned_port listener;

		assert_true(port_scan_parse(cases[i].line, &listener));
		inet_ntop(AF_INET6, listener.address, text, sizeof(text));
		assert_string_equal(text, cases[i].address);
		assert_int_equal(listener.number, cases[i].port);
		assert_true(listener.inode == cases[i].inode);
		assert_int_equal(listener.pid, 0);
	}
}

static void other_lines_are_passed_over(void **state)
{
	static const char *const lines[] = {
		"",
		"   ",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid",
		/* established; port 0; an address of another length; a port of five digits; cut short */
		"   0: 0100007F:0BB8 00000000:0000 01 0:0 00:0 0 1000 0 12345 1 0",
		"   0: 0100007F:0000 00000000:0000 0A 0:0 00:0 0 1000 0 12345 1 0",
		"   0: 0100007F01:0BB8 00000000:0000 0A 0:0 00:0 0 1000 0 12345 1 0",
		"   0: 0100007F:10BB8 00000000:0000 0A 0:0 00:0 0 1000 0 12345 1 0",
		"   0: 0100007F:0BB8 00000000:0000 0A 0:0 00:0 0 1000 0 x 1 0",
		"   0: 0100007F:0BB8 00000000:0000 0A 0:0 00:0 0 1000 0",
		"   0: 0100007F:0BB8 00000000:0000",
		"   0: 0100007F:",
		"   0: 0100007F",
	};

	(void)state;
	for (size_t i = 0; i < array_len(lines); i++) {
		struct scanned_port listener = {.number = 42};

		if (port_scan_parse(lines[i], &listener))
			fail_msg("taken: %s", lines[i]);
		assert_int_equal(listener.number, 42);
	}
}

/* --- over an agent --- */

struct told {
	uint64_t digest;
	bool is_other, is_cut;
	struct scanned_port all[AGENT_PORTS_MAX];
	uint32_t count;
};

static uint32_t read_u32(int channel)
{
	uint8_t raw[4];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));

	assert_true(peer_read(channel, raw, sizeof(raw)));
	return unpack_u32(&in);
}

static void read_listener(int channel, struct scanned_port *listener)
{
	uint32_t len;

	assert_true(peer_read(channel, listener->address, sizeof(listener->address)));
	listener->number = (uint16_t)read_u32(channel);
	listener->pid = (pid_t)read_u32(channel);
	listener->process = read_u32(channel);
	len = read_u32(channel);
	assert_true(len <= AGENT_NAME_MAX);
	assert_true(peer_read(channel, listener->name, len));
	listener->name[len] = '\0';
}

static void ask(struct peer *peer, uint64_t known, struct told *told)
{
	struct buf frame = BUF_INIT(64);
	uint8_t head[9], flag;
	struct unpack in = UNPACK_INIT(head, sizeof(head));
	int channel;

	memset(told, 0, sizeof(*told));
	frame_put_header(&frame, AGENT_PORTS, 0, 8);
	pack_u64(&frame, known);
	channel = peer_open_channel(peer, frame.data, frame.len);
	buf_fini(&frame);
	assert_true(peer_read(channel, head, sizeof(head)));
	told->digest = unpack_u64(&in);
	told->is_other = unpack_u8(&in);
	if (told->is_other) {
		assert_true(peer_read(channel, &flag, 1));
		told->is_cut = flag;
		told->count = read_u32(channel);
		assert_true(told->count <= AGENT_PORTS_MAX);
		for (uint32_t i = 0; i < told->count; i++)
			read_listener(channel, &told->all[i]);
	}
	assert_true(peer_at_end(channel));
	close(channel);
}

static const struct scanned_port *find(const struct told *told, unsigned port)
{
	for (uint32_t i = 0; i < told->count; i++) {
		if (told->all[i].number == port)
			return &told->all[i];
	}
	return NULL;
}

static int listen_somewhere(unsigned *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	assert_int_equal(bind(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(sock, 1), 0);
	assert_int_equal(getsockname(sock, (struct sockaddr *)&at, &len), 0);
	*ret_port = ntohs(at.sin_port);
	return sock;
}

static void who_listens_is_told_with_its_name(void **state)
{
	struct told told;
	unsigned port;
	int sock = listen_somewhere(&port);
	const struct scanned_port *ours;

	prctl(PR_SET_NAME, "odd \x01\xff name");
	ask(*state, 0, &told);
	ours = find(&told, port);
	assert_non_null(ours);
	assert_int_equal(ours->pid, getpid());
	assert_int_equal(ours->process, 0);
	assert_string_equal(ours->name, "odd \x01\xff name");
	assert_true(told.digest != 0);
	close(sock);
}

static void what_is_known_is_not_told_again(void **state)
{
	struct told told, again;
	unsigned port;
	int sock = listen_somewhere(&port);

	ask(*state, 0, &told);
	/* Others listen on this machine as well, and come and go. */
	do {
		ask(*state, told.digest, &again);
		if (again.is_other)
			told = again;
	} while (again.is_other);
	assert_true(again.digest == told.digest);
	close(sock);
	ask(*state, told.digest, &again);
	assert_true(again.is_other && again.digest != told.digest);
	assert_null(find(&again, port));
}

static void a_command_and_its_children_are_told_by_its_id(void **state)
{
	struct peer *peer = *state;
	struct peer_result result;
	const struct scanned_port *listener;
	struct told told;
	unsigned port;

	peer_result_init(&result);
	peer_shell(peer, 77, 0,
		"python3 -c \"import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); "
		"s.listen(); print(s.getsockname()[1], flush=True); time.sleep(1000)\" & wait");
	peer_wait_for_text(peer, &result, "\n");
	assert_int_equal(sscanf((const char *)result.out.data, "%u", &port), 1);
	ask(peer, 0, &told);
	listener = find(&told, port);
	assert_non_null(listener);
	assert_int_equal(listener->process, 77);
	assert_true(listener->pid > 0 && (uint32_t)listener->pid != result.pid);
	assert_string_equal(listener->name, "python3");
	peer_signal(peer, 77, SIGKILL, true);
	peer_collect(peer, 77, true, &result);
	peer_result_fini(&result);
}

static void places_are_in_order_and_different(void **state)
{
	struct told told;
	int socks[5];
	unsigned port;

	for (size_t i = 0; i < array_len(socks); i++)
		socks[i] = listen_somewhere(&port);
	ask(*state, 0, &told);
	assert_true(told.count >= array_len(socks));
	for (uint32_t i = 1; i < told.count; i++) {
		const struct scanned_port *a = &told.all[i - 1], *b = &told.all[i];

		assert_true(a->number < b->number ||
			    (a->number == b->number && memcmp(a->address, b->address, 16) < 0));
	}
	for (size_t i = 0; i < array_len(socks); i++)
		close(socks[i]);
}

static void a_request_on_the_link_ends_it(void **state)
{
	struct peer *peer = *state;
	uint8_t known[8] = {0};

	peer_send(peer, AGENT_PORTS, 0, known, sizeof(known));
	assert_true(peer_link_ends(peer));
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_the_kernel_are_understood),
		cmocka_unit_test(other_lines_are_passed_over),
		WITH_PEER(who_listens_is_told_with_its_name),
		WITH_PEER(what_is_known_is_not_told_again),
		WITH_PEER(a_command_and_its_children_are_told_by_its_id),
		WITH_PEER(places_are_in_order_and_different),
		WITH_PEER(a_request_on_the_link_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
