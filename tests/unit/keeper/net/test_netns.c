/* SPDX-License-Identifier: Apache-2.0 */
/* A network namespace with a way out, seen from inside and from the sockets that lead there. */
#include "base/fd.h"
#include "deadline.h"
#include "keeper/net/netns.h"
#include "wire/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
	int own_fd;
	struct network network;
};

static int setup(void **state)
{
	static struct world world;
	struct err err;

	assert_int_equal(netns_open_own(&world.own_fd, &err), 0);
	assert_int_equal(netns_make(world.own_fd, &world.network.netns_fd, &err), 0);
	assert_int_equal(netns_open_egress(world.own_fd, &world.network, &err), 0);
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	network_release(&world->network);
	close(world->own_fd);
	return 0;
}

static struct sockaddr_in at(const char *address, unsigned port)
{
	struct sockaddr_in sockaddr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	assert_int_equal(inet_pton(AF_INET, address, &sockaddr.sin_addr), 1);
	return sockaddr;
}

/* A socket that a program inside has. */
static int open_inside(const struct world *world, int family, int type, int protocol)
{
	int sock;

	assert_int_equal(setns(world->network.netns_fd, CLONE_NEWNET), 0);
	sock = socket(family, type | SOCK_CLOEXEC, protocol);
	assert_int_equal(setns(world->own_fd, CLONE_NEWNET), 0);
	assert_true(sock >= 0);
	return sock;
}

static int inside(const struct world *world, int type)
{
	return open_inside(world, AF_INET, type, 0);
}

static int accept_within(int listener, int timeout_ms)
{
	struct pollfd ready = {.fd = listener, .events = POLLIN};

	return poll(&ready, 1, timeout_ms) == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

/* Of IPv6, which IPv4 is a part of: ::ffff:a.b.c.d. */
static struct sockaddr_in6 at_v6(const char *address, unsigned port)
{
	struct sockaddr_in6 sockaddr = {
		.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	assert_int_equal(inet_pton(AF_INET6, address, &sockaddr.sin6_addr), 1);
	return sockaddr;
}

static int inside_v6(const struct world *world, int type)
{
	return open_inside(world, AF_INET6, type, 0);
}

static void every_connection_arrives_with_its_goal(void **state)
{
	static const struct {
		const char *address;
		unsigned port;
	} goals[] = {{"::ffff:93.184.216.34", 443}, {"::ffff:10.0.0.2", 1},
		{"::ffff:198.19.255.255", 65535}, {"::ffff:169.254.169.254", 80},
		{"::ffff:127.0.0.1", EGRESS_PROXY_PORT}, {"2001:db8::1", 443}, {"fd00::5", 22},
		{"::1", EGRESS_PROXY_PORT}};
	struct world *world = *state;

	assert_true(world->network.is_transparent); /* not proven without nf_tables */
	for (size_t i = 0; i < array_len(goals); i++) {
		struct sockaddr_in6 goal = at_v6(goals[i].address, goals[i].port), seen;
		auto_fd int client = inside_v6(world, SOCK_STREAM);
		auto_fd int server = -1;
		socklen_t len = sizeof(seen);

		assert_int_equal(connect(client, (struct sockaddr *)&goal, sizeof(goal)), 0);
		server = accept_within(world->network.sockets[KEEPER_EGRESS_PROXY], 5000);
		assert_true(server >= 0);
		assert_int_equal(getsockname(server, (struct sockaddr *)&seen, &len), 0);
		assert_memory_equal(&seen.sin6_addr, &goal.sin6_addr, sizeof(seen.sin6_addr));
		assert_int_equal(seen.sin6_port, goal.sin6_port);
	}
}

/* Whoever listens on any address gets a connection to the local one; one to the foreign one leaves. */
static void assert_gets_only_its_own(struct world *world, const struct sockaddr *any,
	const struct sockaddr *local, const struct sockaddr *foreign, socklen_t len)
{
	auto_fd int listener = open_inside(world, any->sa_family, SOCK_STREAM, 0);
	auto_fd int near = open_inside(world, any->sa_family, SOCK_STREAM, 0);
	auto_fd int far = open_inside(world, any->sa_family, SOCK_STREAM, 0);
	auto_fd int server = -1, out = -1;

	assert_int_equal(bind(listener, any, len), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(connect(near, local, len), 0);
	server = accept_within(listener, 5000);
	assert_true(server >= 0);
	assert_int_equal(connect(far, foreign, len), 0);
	out = accept_within(world->network.sockets[KEEPER_EGRESS_PROXY], 5000);
	assert_true(out >= 0);
	assert_int_equal(accept_within(listener, 0), -1);
}

static void over_ipv6_too_what_listens_inside_gets_only_what_is_for_it(void **state)
{
	struct world *world = *state;
	auto_fd int datagram = inside_v6(world, SOCK_DGRAM);
	struct sockaddr_in6 any = at_v6("::", 8090), local = at_v6("::1", 8090);
	struct sockaddr_in6 foreign = at_v6("2001:db8::1", 8090), link = at_v6("ff02::1", 53530);

	assert_gets_only_its_own(world, (struct sockaddr *)&any, (struct sockaddr *)&local,
		(struct sockaddr *)&foreign, sizeof(any));
	assert_int_equal(
		sendto(datagram, "x", 1, 0, (struct sockaddr *)&foreign, sizeof(foreign)), -1);
	assert_int_equal(errno, EPERM);
	foreign.sin6_port = htons(EGRESS_DNS_PORT);
	assert_int_equal(
		sendto(datagram, "x", 1, 0, (struct sockaddr *)&foreign, sizeof(foreign)), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(sendto(datagram, "x", 1, 0, (struct sockaddr *)&link, sizeof(link)), -1);
	assert_int_equal(sendto(datagram, "x", 1, 0, (struct sockaddr *)&local, sizeof(local)), 1);
}

static void what_listens_inside_gets_only_what_is_for_it(void **state)
{
	struct world *world = *state;
	auto_fd int nobody = inside(world, SOCK_STREAM);
	struct sockaddr_in any = at("0.0.0.0", 8080), local = at("127.0.0.1", 8080);
	struct sockaddr_in foreign = at("93.184.216.34", 8080), free_port = at("127.0.0.1", 8081);

	assert_gets_only_its_own(world, (struct sockaddr *)&any, (struct sockaddr *)&local,
		(struct sockaddr *)&foreign, sizeof(any));
	assert_int_equal(connect(nobody, (struct sockaddr *)&free_port, sizeof(free_port)), -1);
	assert_int_equal(errno, ECONNREFUSED);
}

static void datagrams_are_refused_at_once_but_for_dns(void **state)
{
	struct world *world = *state;
	auto_fd int client = inside(world, SOCK_DGRAM);
	struct sockaddr_in quic = at("93.184.216.34", 443), dns = at("8.8.8.8", EGRESS_DNS_PORT);
	struct pollfd ready = {.fd = world->network.sockets[KEEPER_EGRESS_DNS], .events = POLLIN};

	assert_int_equal(sendto(client, "x", 1, 0, (struct sockaddr *)&quic, sizeof(quic)), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(sendto(client, "x", 1, 0, (struct sockaddr *)&dns, sizeof(dns)), 1);
	assert_int_equal(poll(&ready, 1, DEADLINE_MS), 1);
}

/* Raw sockets, as whoever had the power would ping; what a sandbox may open is tried in tests/e2e. */
static void whoever_pings_is_told_at_once(void **state)
{
	static const char echo_v4[8] = {8}, echo_v6[8] = {(char)128};
	struct world *world = *state;
	auto_fd int v4 = open_inside(world, AF_INET, SOCK_RAW, IPPROTO_ICMP);
	auto_fd int v6 = open_inside(world, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	struct sockaddr_in far_v4 = at("93.184.216.34", 0);
	struct sockaddr_in6 far_v6 = at_v6("2606:4700::1111", 0), near_v6 = at_v6("::1", 0);

	assert_int_equal(sendto(v4, echo_v4, 8, 0, (struct sockaddr *)&far_v4, sizeof(far_v4)), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(sendto(v6, echo_v6, 8, 0, (struct sockaddr *)&far_v6, sizeof(far_v6)), -1);
	assert_int_equal(errno, ENETUNREACH);
	assert_int_equal(
		sendto(v6, echo_v6, 8, 0, (struct sockaddr *)&near_v6, sizeof(near_v6)), 8);
}

static void a_socket_from_outside_reaches_what_listens_inside(void **state)
{
	struct world *world = *state;
	auto_fd int listener = inside(world, SOCK_STREAM), sock = -1, server = -1;
	struct sockaddr_in local = at("127.0.0.1", 9000);
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(9000)};
	struct err err;

	inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
	assert_int_equal(bind(listener, (struct sockaddr *)&local, sizeof(local)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(netns_open_socket(world->own_fd, world->network.netns_fd, &sock, &err), 0);
	assert_true(connect(sock, (struct sockaddr *)&mapped, sizeof(mapped)) == 0 ||
		    errno == EINPROGRESS);
	server = accept_within(listener, 5000);
	assert_true(server >= 0);
}

/* As an administrator turns it off. The daemon tells by the listener whether IPv6 leads out. */
static void where_ipv6_is_turned_off_the_listener_is_of_ipv4(void **state)
{
	struct world *world = *state;
	struct network network = NETWORK_NONE;
	struct err err;

	assert_int_equal(netns_make(world->own_fd, &network.netns_fd, &err), 0);
	assert_int_equal(setns(network.netns_fd, CLONE_NEWNET), 0);
	assert_int_equal(
		fd_write_file(AT_FDCWD, "/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"), 0);
	assert_int_equal(setns(world->own_fd, CLONE_NEWNET), 0);
	assert_int_equal(netns_open_egress(world->own_fd, &network, &err), 0);
	assert_true(network.is_transparent);
	assert_int_equal(fd_family(network.sockets[KEEPER_EGRESS_PROXY]), AF_INET);
	assert_int_equal(fd_family(world->network.sockets[KEEPER_EGRESS_PROXY]), AF_INET6);
	network_release(&network);
}

/* As on a kernel that was booted without IPv6: there are no such sockets. */
static void take_ipv6_away(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = array_len(code), .filter = code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void without_ipv6_there_is_a_way_out_and_in_over_ipv4(struct world *world)
{
	struct network network = NETWORK_NONE;
	auto_fd int client = -1, out = -1, listener = -1, sock = -1, server = -1;
	struct sockaddr_in far = at("93.184.216.34", 443), local = at("127.0.0.1", 9001);
	struct err err;

	take_ipv6_away();
	assert_int_equal(netns_make(world->own_fd, &network.netns_fd, &err), 0);
	assert_int_equal(netns_open_egress(world->own_fd, &network, &err), 0);
	assert_true(network.is_transparent);
	assert_int_equal(fd_family(network.sockets[KEEPER_EGRESS_PROXY]), AF_INET);
	*world = (struct world){world->own_fd, network};
	client = inside(world, SOCK_STREAM);
	assert_int_equal(connect(client, (struct sockaddr *)&far, sizeof(far)), 0);
	out = accept_within(network.sockets[KEEPER_EGRESS_PROXY], 5000);
	assert_true(out >= 0);
	listener = inside(world, SOCK_STREAM);
	assert_int_equal(bind(listener, (struct sockaddr *)&local, sizeof(local)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(netns_open_socket(world->own_fd, network.netns_fd, &sock, &err), 0);
	assert_int_equal(fd_family(sock), AF_INET);
	assert_true(connect(sock, (struct sockaddr *)&local, sizeof(local)) == 0 ||
		    errno == EINPROGRESS);
	server = accept_within(listener, 5000);
	assert_true(server >= 0);
	network_release(&network);
}

/* In a child: what is taken away does not come back. */
static void a_kernel_without_ipv6_is_served(void **state)
{
	struct world world = *(struct world *)*state;
	pid_t child = fork();
	int status;

	if (child == 0) {
		without_ipv6_there_is_a_way_out_and_in_over_ipv4(&world);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_connection_arrives_with_its_goal),
		cmocka_unit_test(over_ipv6_too_what_listens_inside_gets_only_what_is_for_it),
		cmocka_unit_test(what_listens_inside_gets_only_what_is_for_it),
		cmocka_unit_test(datagrams_are_refused_at_once_but_for_dns),
		cmocka_unit_test(whoever_pings_is_told_at_once),
		cmocka_unit_test(a_socket_from_outside_reaches_what_listens_inside),
		cmocka_unit_test(where_ipv6_is_turned_off_the_listener_is_of_ipv4),
		cmocka_unit_test(a_kernel_without_ipv6_is_served),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
