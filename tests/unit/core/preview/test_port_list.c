/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of an agent about ports, honest and otherwise. */
#include "core/preview/port_list.h"

#include "core/preview/preview.h"
#include "core_fixture.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void put_head(struct buf *out, unsigned is_other, unsigned is_cut, uint32_t count)
{
	pack_u64(out, 99);
	pack_u8(out, (uint8_t)is_other);
	pack_u8(out, (uint8_t)is_cut);
	pack_u32(out, count);
}

static void put_port(
	struct buf *out, const char *address, uint32_t port, uint32_t pid, const char *name)
{
	struct in6_addr raw;

	assert_int_equal(inet_pton(AF_INET6, address, &raw), 1);
	buf_append(out, &raw, sizeof(raw));
	pack_u32(out, port);
	pack_u32(out, pid);
	pack_u32(out, 7);
	pack_str(out, name);
}

static int parse(struct buf *out, struct port_list *ret_list)
{
	int r = port_list_parse(out->data, out->len, ret_list);

	buf_fini(out);
	return r;
}

static void a_list_is_taken_apart(void **state)
{
	struct buf out = BUF_INIT(PORT_LIST_ANSWER_MAX);
	struct port_list list;

	(void)state;
	put_head(&out, 1, 1, 3);
	put_port(&out, "::ffff:127.0.0.1", 80, 5, "nginx");
	put_port(&out, "::1", 3000, 0, "");
	put_port(&out, "::ffff:0.0.0.0", 3000, 6, "\x1b[2J\xff\"\\ ok");
	assert_int_equal(parse(&out, &list), 1);
	assert_int_equal(list.count, 3);
	assert_true(list.is_cut);
	assert_int_equal(list.digest, 99);
	assert_int_equal(list.ports[0].number, 80);
	assert_int_equal(list.ports[0].pid, 5);
	assert_int_equal(list.ports[0].process, 7);
	assert_string_equal(list.ports[0].command, "nginx");
	assert_string_equal(list.ports[2].command, "?[2J?\"\\ ok");
	port_list_fini(&list);
}

static void a_known_list_is_short(void **state)
{
	struct buf out = BUF_INIT(64);
	struct port_list list = {.count = 42};

	(void)state;
	pack_u64(&out, 99);
	pack_u8(&out, 0);
	assert_int_equal(parse(&out, &list), 0);
	assert_int_equal(list.count, 42);
}

static void the_longest_answer_fits(void **state)
{
	struct buf out = BUF_INIT(PORT_LIST_ANSWER_MAX);
	struct port_list list;

	(void)state;
	put_head(&out, 1, 1, AGENT_PORTS_MAX);
	for (uint32_t i = 1; i <= AGENT_PORTS_MAX; i++)
		put_port(&out, "::", i, i, "fifteen letters");
	assert_false(out.failed);
	assert_int_equal(out.len, PORT_LIST_ANSWER_MAX);
	assert_int_equal(parse(&out, &list), 1);
	assert_int_equal(list.count, AGENT_PORTS_MAX);
	port_list_fini(&list);
}

static void what_no_honest_agent_says_is_refused(void **state)
{
	struct port_list list;

	(void)state;
	for (unsigned wrong = 0; wrong < 10; wrong++) {
		struct buf out = BUF_INIT(64u * 1024);

		put_head(&out, wrong == 0 ? 2 : 1, wrong == 1 ? 2 : 0,
			wrong == 2   ? 3
			: wrong == 3 ? 1
				     : 2);
		put_port(&out, wrong == 4 ? "::2" : "::1", 3000, wrong == 5 ? 1u << 31 : 1,
			wrong == 6 ? "sixteen letters!" : "name");
		put_port(&out, wrong == 7 ? "::2" : "::1",
			wrong == 8   ? 0
			: wrong == 9 ? 65536
			: wrong == 4 ? 3000
			: wrong == 7 ? 2999
				     : 3001,
			1, "name");
		if (parse(&out, &list) != -EPROTO)
			fail_msg("number %u was taken", wrong);
	}
}

static void a_place_is_named_once(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct port_list list;

	(void)state;
	put_head(&out, 1, 0, 2);
	put_port(&out, "::1", 3000, 1, "a");
	put_port(&out, "::1", 3000, 2, "b");
	assert_int_equal(parse(&out, &list), -EPROTO);
}

static void no_list_means_more_than_can_be(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct port_list list;

	(void)state;
	put_head(&out, 1, 0, UINT32_MAX);
	assert_int_equal(parse(&out, &list), -EPROTO);
}

static void addresses_that_a_preview_gets_to(void **state)
{
	static const struct {
		const char *address, *shown;
		bool is_reachable;
	} cases[] = {
		{"::", "::", true},
		{"::1", "::1", true},
		{"::ffff:0.0.0.0", "0.0.0.0", true},
		{"::ffff:127.0.0.1", "127.0.0.1", true},
		{"::ffff:127.0.0.2", "127.0.0.2", false},
		{"::ffff:198.18.0.1", "198.18.0.1", false},
		{"fe80::1", "fe80::1", false},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		struct port port = {.number = 80, .pid = 3, .process = 9, .command = "x"};
		json_t *json;

		inet_pton(AF_INET6, cases[i].address, &port.address);
		assert_int_equal(port_is_reachable(&port), cases[i].is_reachable);
		json = port_to_json(&port);
		assert_string_equal(
			json_string_value(json_object_get(json, "address")), cases[i].shown);
		assert_string_equal(json_string_value(json_object_get(json, "process")), "p9");
		json_decref(json);
	}
}

/* Answers byte by byte, for as long as somebody listens. */
static void *trickle(void *arg)
{
	struct wire_frame frame;
	int channel;

	assert_int_equal(read(*(int *)arg, &channel, sizeof(channel)), sizeof(channel));
	wire_expect(channel, AGENT_PORTS, &frame);
	while (send(channel, "", 1, MSG_NOSIGNAL) == 1)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	close(channel);
	return NULL;
}

static void an_agent_that_never_ends_its_answer_is_given_up(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox;
	struct port_list list;
	pthread_t agent;
	struct err err;
	int channels[2];

	assert_int_equal(pipe2(channels, O_CLOEXEC), 0);
	world->driver.channel_taker = channels[1];
	sandbox = world_create(world, world_id('a'));
	assert_int_equal(pthread_create(&agent, NULL, trickle, &channels[0]), 0);
	assert_true(port_list_read(sandbox, 100, &list, &err) < 0);
	assert_int_equal(err.kind, ERR_TIMEOUT);
	pthread_join(agent, NULL);
	world->driver.channel_taker = -1;
	close(channels[0]);
	close(channels[1]);
	assert_true(preview_look_around(sandbox, &list) < 0); /* nobody answers at all */
	sandbox_unref(sandbox);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_taken_apart),
		cmocka_unit_test(a_known_list_is_short),
		cmocka_unit_test(the_longest_answer_fits),
		cmocka_unit_test(what_no_honest_agent_says_is_refused),
		cmocka_unit_test(a_place_is_named_once),
		cmocka_unit_test(no_list_means_more_than_can_be),
		cmocka_unit_test(addresses_that_a_preview_gets_to),
		cmocka_unit_test_setup_teardown(an_agent_that_never_ends_its_answer_is_given_up,
			world_setup, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
