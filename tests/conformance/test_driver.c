/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every driver must do (src/driver/driver.h). The argument is the name of the driver. Tests of
 * a capability run if the driver declares it; those that run commands, if agents are behind its
 * links.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "model/id.h"
#include "suite.h"
#include "wire/agent.h"
#include "wire/frame.h"
#include "wire/layer.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- what it says of itself --- */

static void it_has_every_function_that_it_must_have(void **state)
{
	const struct driver_ops *ops = driver->ops;

	(void)state;
	assert_string_equal(ops->name, subject->name);
	assert_true(driver->capabilities < DRIVER_BIT(DRIVER_CAPABILITY_COUNT));
	assert_true(ops->start && ops->stop && ops->stats && ops->usage && ops->clean &&
		    ops->list && ops->is_stored && ops->dial && ops->open_channel);
	assert_true(ops->shutdown && ops->close);
}

static void it_has_the_functions_of_its_capabilities(void **state)
{
	const struct driver_ops *ops = driver->ops;

	(void)state;
	assert_true(!driver_can(driver, DRIVER_FREEZE) || ops->freeze);
	assert_true(!driver_can(driver, DRIVER_LIVE_RESIZE) || (ops->resize && ops->set_limits));
	assert_true(
		!driver_can(driver, DRIVER_LIVE_RESIZE) || driver_can(driver, DRIVER_DISK_LIMIT));
	assert_true(!driver_can(driver, DRIVER_EGRESS_POLICY) || ops->open_egress_sockets);
	assert_true(!driver_can(driver, DRIVER_ISOLATED_EXEC) || ops->isolated);
	assert_true(!driver_can(driver, DRIVER_ADOPT) || ops->adopt);
	assert_true(!driver_can(driver, DRIVER_LAYERS) ||
		    (ops->write_layer && ops->commit_layer && ops->drop_layer && ops->list_layers &&
			    ops->read_tree && ops->read_changes && ops->show_layer &&
			    ops->stack_layers && ops->drop_stack));
	assert_true(!driver_can(driver, DRIVER_SNAPSHOTS) ||
		    (ops->take_snapshot && ops->load_snapshot && ops->list_snapshots &&
			    ops->drop_snapshot));
	assert_true(!driver_can(driver, DRIVER_PROJECT_FILES) || ops->show_project);
}

static void one_that_serves_says_so(void **state)
{
	struct pollfd gone = {.fd = driver_gone_fd(driver), .events = POLLIN};
	struct err err = {0};

	(void)state;
	assert_int_equal(driver_check(driver, &err), 0);
	assert_int_equal(poll(&gone, 1, 0), 0);
}

/* --- a sandbox that there is not --- */

static void what_does_not_run_is_not_found(void **state)
{
	struct driver_egress_sockets sockets;
	struct driver_stats stats;
	char id[ID_LEN + 1];
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};
	int fd = -1;

	(void)state;
	new_id(id);
	assert_not_found(driver->ops->open_channel(driver, id, last_link, "", 0, &fd, &err), &err);
	assert_not_found(driver->ops->stats(driver, id, &stats, &err), &err);
	assert_not_found(driver->ops->dial(driver, id, 80, 100, &fd, &err), &err);
	if (driver_can(driver, DRIVER_ADOPT))
		assert_not_found(driver->ops->adopt(driver, id, &link, &walls, &err), &err);
	if (driver_can(driver, DRIVER_FREEZE))
		assert_not_found(driver->ops->freeze(driver, id, true, &err), &err);
	if (driver_can(driver, DRIVER_LIVE_RESIZE))
		assert_not_found(driver->ops->resize(driver, id, SUBJECT_DISK, 0, &err), &err);
	if (driver_can(driver, DRIVER_EGRESS_POLICY))
		assert_not_found(
			driver->ops->open_egress_sockets(driver, id, &sockets, &err), &err);
	assert_true(fd == -1 && link.fd == -1);
	assert_false(is_listed(false, id));
	assert_false(is_stored(id));
}

/* A daemon that died in the middle does the same again: both succeed when there is nothing to do. */
static void ending_and_removing_nothing_is_fine(void **state)
{
	struct driver_end end = {.ended = true};
	char id[ID_LEN + 1];
	struct err err = {0};

	(void)state;
	new_id(id);
	assert_int_equal(driver->ops->stop(driver, id, &end, &err), 0);
	assert_false(end.ended);
	must_clean(id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
	must_clean(id, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
}

/* --- start and stop --- */

static void a_started_sandbox_is_listed_until_it_is_stopped(void **state)
{
	char id[ID_LEN + 1];
	int link;

	(void)state;
	new_id(id);
	link = must_start(id);
	assert_true(is_listed(false, id));
	assert_true(is_stored(id));
	must_stop(id);
	assert_false(is_listed(false, id));
	assert_true(is_stored(id));
	subject_expect_end(link);
	discard(id, link);
	assert_false(is_stored(id));
}

struct steps {
	unsigned count;
	bool is_over;
};

static void note_step(void *arg, const char *step, int permille)
{
	struct steps *steps = arg;

	assert_false(steps->is_over);
	assert_true(step[0] && permille >= -1 && permille <= 1000);
	steps->count++;
}

/* A start may take long, and says how far it is while it lasts. */
static void progress_is_told_until_a_start_returns(void **state)
{
	struct steps steps = {0};
	const struct driver_progress progress = {note_step, &steps};
	struct driver_spec spec;
	struct driver_link link = {.fd = -1};
	struct walls walls;
	char id[ID_LEN + 1];
	struct err err = {0};

	(void)state;
	new_id(id);
	spec = subject_spec(id);
	assert_int_equal(driver->ops->start(driver, &spec, &progress, &link, &walls, &err), 0);
	steps.is_over = true;
	assert_int_equal(steps.count, subject->steps);
	last_link = link.number;
	assert_int_equal(subject_greet(link.fd), 0);
	discard(id, link.fd);
}

static void what_a_driver_cannot_mount_is_refused(void **state)
{
	static const struct driver_mount mount = {"/nonexistent/source", "/mnt", true};
	struct driver_spec spec;
	struct driver_link link = {.fd = -1};
	struct walls walls;
	char id[ID_LEN + 1];
	struct err err = {0};

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	spec = subject_spec(id);
	spec.mounts = &mount;
	spec.mount_count = 1;
	assert_true(driver->ops->start(driver, &spec, NULL, &link, &walls, &err) < 0);
	assert_int_equal(link.fd, -1);
	assert_non_null(strstr(err.message, "/nonexistent/source"));
	assert_false(is_listed(false, id));
}

/* A disk that is whole is not listed as failed, and a check of it changes nothing. */
static void a_whole_disk_has_not_failed_and_needs_no_repair(void **state)
{
	char id[ID_LEN + 1], ids[DRIVER_PAGE][ID_LEN + 1];
	struct err err = {0};
	int link, count;

	(void)state;
	new_id(id);
	link = must_start(id);
	count = driver->ops->list_failed ? driver->ops->list_failed(driver, ids, &err) : 0;
	assert_true(count >= 0 && count <= DRIVER_PAGE);
	for (int i = 0; i < count; i++)
		assert_string_not_equal(ids[i], id);
	if (subject->has_agent)
		must_print(link, 1, "echo kept > /var/tmp/file", "");
	close(link);
	must_stop(id);
	if (driver->ops->check_disk)
		assert_int_equal(driver->ops->check_disk(driver, id, &err), 0);
	link = must_start(id);
	if (subject->has_agent)
		must_print(link, 1, "cat /var/tmp/file", "kept\n");
	discard(id, link);
}

/* What an operator is told of files without a sandbox is one line. */
static void files_are_located_in_words(void **state)
{
	char id[ID_LEN + 1], text[DRIVER_LOCATION_MAX] = "";
	struct err err = {0};
	int link;

	(void)state;
	if (!driver->ops->locate)
		skip();
	new_id(id);
	assert_not_found(driver->ops->locate(driver, id, text, &err), &err);
	assert_string_equal(text, "");
	link = must_start(id);
	close(link);
	must_stop(id);
	assert_int_equal(driver->ops->locate(driver, id, text, &err), 0);
	assert_true(text[0] && !strchr(text, '\n'));
	must_clean(id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
}

static void a_second_start_is_refused_and_the_first_runs_on(void **state)
{
	char id[ID_LEN + 1];
	struct driver_spec spec;
	struct pollfd ended;
	struct driver_link second = {.fd = -1};
	struct walls walls;
	struct err err = {0};
	int link;

	(void)state;
	new_id(id);
	spec = subject_spec(id);
	link = must_start(id);
	assert_int_equal(driver->ops->start(driver, &spec, NULL, &second, &walls, &err), -EEXIST);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_int_equal(second.fd, -1);
	assert_true(is_listed(false, id));
	ended = (struct pollfd){.fd = link, .events = POLLIN};
	assert_int_equal(poll(&ended, 1, 0), 0);
	discard(id, link);
}

static void what_runs_cannot_be_cleaned(void **state)
{
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	new_id(id);
	link = must_start(id);
	assert_true(driver->ops->clean(driver, id, DRIVER_PART_WORKSPACE, &err) < 0);
	assert_true(is_listed(false, id));
	discard(id, link);
}

static void several_are_listed_in_order(void **state)
{
	char ids[3][ID_LEN + 1];
	int links[3];

	(void)state;
	for (size_t i = 0; i < array_len(ids); i++) {
		new_id(ids[i]);
		links[i] = must_start(ids[i]);
	}
	for (size_t i = 0; i < array_len(ids); i++)
		assert_true(is_listed(false, ids[i]));
	must_stop(ids[1]);
	assert_true(is_listed(false, ids[0]));
	assert_false(is_listed(false, ids[1]));
	assert_true(is_listed(false, ids[2]));
	for (size_t i = 0; i < array_len(ids); i++)
		discard(ids[i], links[i]);
}

static void channels_are_side_by_side_and_of_one_run_of_a_sandbox(void **state)
{
	char id[ID_LEN + 1];
	uint64_t before;
	struct err err = {0};
	int link, fd = -1;

	(void)state;
	new_id(id);
	link = must_start(id);
	for (int i = 0; i < 20 && subject->has_agent; i++)
		must_stat(id, i % 2 ? "/" : "/workspace");
	close(link);
	must_stop(id);
	before = last_link;
	assert_true(driver->ops->open_channel(driver, id, before, "", 0, &fd, &err) < 0);
	link = must_start(id);
	assert_true(driver->ops->open_channel(driver, id, before, "", 0, &fd, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_int_equal(fd, -1);
	if (subject->has_agent)
		must_stat(id, "/");
	discard(id, link);
}

static void stop_tells_how_one_had_ended_by_itself(void **state)
{
	static const uint8_t no_grace[4];
	struct driver_end end = {0};
	struct buf frame = BUF_INIT(64);
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	frame_put(&frame, AGENT_SHUTDOWN, 0, no_grace, sizeof(no_grace));
	assert_int_equal(fd_write_full(link, frame.data, frame.len), 0);
	buf_fini(&frame);
	subject_expect_end(link);
	/* Its end may be seen by us before it is by the driver. */
	for (uint64_t until = clock_steady_ms() + SUBJECT_PATIENCE_MS; !end.ended;) {
		struct driver_stats stats;

		assert_true(clock_steady_ms() < until);
		if (driver->ops->stats(driver, id, &stats, &err) == 0)
			continue;
		assert_int_equal(driver->ops->stop(driver, id, &end, &err), 0);
	}
	assert_true(WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == 0);
	assert_int_equal(end.cause.kind, ERR_NONE);
	discard(id, link);
}

/* Another daemon takes it up: its processes run on, and the old link is dead. */
static void an_adopted_sandbox_goes_on(void **state)
{
	struct driver_spec spec;
	char id[ID_LEN + 1];
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};
	int old;

	(void)state;
	NEEDS(DRIVER_ADOPT);
	new_id(id);
	spec = subject_spec(id);
	old = must_start_as(&spec);
	if (subject->has_agent) {
		subject_begin(old, 1, "echo begun; exec sleep 1000");
		subject_await_output(old, 1, "begun");
	}
	subject->close(driver);
	driver = subject->open();
	assert_true(is_listed(false, id));
	assert_int_equal(driver->ops->adopt(driver, id, &link, &walls, &err), 0);
	subject_expect_end(old);
	close(old);
	last_link = link.number;
	if (subject->has_agent) {
		assert_int_equal(subject_greet(link.fd), 1);
		must_print(link.fd, 2, "echo here", "here\n");
		must_stat(id, "/etc");
	}
	discard(id, link.fd);
}

/* Prepared for one process; another that is not isolated sees the sandbox's processes. */
static void an_isolated_command_sees_itself_alone(void **state)
{
	static const char line[] = "echo $$";
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS(DRIVER_ISOLATED_EXEC);
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	assert_int_equal(driver->ops->isolated(driver, id, 7, &err), 0);
	assert_int_equal(driver->ops->isolated(driver, id, 6, &err), 0);
	for (uint32_t number = 6; number <= 7; number++) {
		subject_begin_as(link, number, AGENT_EXEC_ISOLATED, line);
		subject_await_output(link, number, "2\n");
	}
	discard(id, link);
}

/* --- network --- */

static const char listen_line[] =
	"exec /usr/bin/python3 -c '\n"
	"import socket, sys\n"
	"s = socket.create_server((sys.argv[1], 8000), family=int(sys.argv[2]))\n"
	"print(\"ready\", flush=True)\n"
	"while True:\n"
	"  c = s.accept()[0]\n"
	"  c.sendall(b\"hello \" + c.recv(100))\n"
	"  c.close()\n"
	"' %s %d";

static void must_answer(const char *id)
{
	char text[32] = "";
	struct pollfd stream = {.fd = -1, .events = POLLIN};
	struct err err = {0};

	if (driver->ops->dial(driver, id, 8000, SUBJECT_PATIENCE_MS, &stream.fd, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(send(stream.fd, "you", 3, MSG_NOSIGNAL), 3);
	assert_true(fcntl(stream.fd, F_GETFL) & O_NONBLOCK);
	for (size_t at = 0; at < strlen("hello you");) {
		ssize_t n;

		assert_int_equal(poll(&stream, 1, SUBJECT_PATIENCE_MS), 1);
		n = recv(stream.fd, text + at, sizeof(text) - 1 - at, 0);
		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_string_equal(text, "hello you");
	close(stream.fd);
}

static void a_port_is_dialled_on_either_loopback(void **state)
{
	static const struct {
		const char *address;
		int family;
	} loopbacks[] = {{"127.0.0.1", AF_INET}, {"::1", AF_INET6}};
	char id[ID_LEN + 1], line[sizeof(listen_line) + 32];
	struct err err = {0};

	(void)state;
	NEEDS_AGENT;
	for (size_t i = 0; i < array_len(loopbacks); i++) {
		int link, fd = -1;

		new_id(id);
		link = must_start(id);
		assert_true(driver->ops->dial(driver, id, 8000, 100, &fd, &err) < 0);
		assert_string_equal(err.code, DRIVER_PORT_CLOSED);
		assert_int_equal(fd, -1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(
			line, sizeof(line), listen_line, loopbacks[i].address, loopbacks[i].family);
#pragma GCC diagnostic pop
		subject_begin(link, 1, line);
		subject_await_output(link, 1, "ready");
		must_answer(id);
		must_answer(id);
		discard(id, link);
	}
}

/* Starts a member; its link, attached. */
static int must_join(const char *id, const char *primary, unsigned number)
{
	struct driver_spec spec = subject_spec(id);

	spec.hostname = "member";
	spec.joins = primary;
	spec.member = number;
	spec.resources.disk_bytes = 0;
	spec.resources.pids = SUBJECT_PIDS / 2;
	return must_start_as(&spec);
}

static void a_member_shares_network_and_workspace_alone(void **state)
{
	static const char look[] = "cat /volumes/file /var/tmp/file 2>/dev/null; :";
	char id[ID_LEN + 1], member[ID_LEN + 1], line[sizeof(listen_line) + 32];
	struct driver_stats stats;
	struct err err = {0};
	int link, joined;

	(void)state;
	NEEDS(DRIVER_MEMBERS);
	NEEDS_AGENT;
	new_id(id);
	new_id(member);
	link = must_start(id);
	must_print(link, 1,
		"echo one > /workspace/outputs/file; chown 1000:1000 /workspace/outputs/file", "");
	joined = must_join(member, id, 1);
	assert_true(is_listed(false, member));
	assert_false(is_stored(member));
	must_print(joined, 1,
		"uname -n; cat /workspace/outputs/file; stat -c %u /workspace/outputs/file; "
		"ls -d /proc/[0-9]* | wc -l | grep -cx '[1-5]'; touch /volumes/file /var/tmp/file",
		"member\none\n1000\n1\n");
	assert_int_equal(driver->ops->stats(driver, member, &stats, &err), 0);
	assert_int_equal(stats.pids_limit, SUBJECT_PIDS / 2);
	/* Neither sees the files of the other's system. */
	must_print(link, 2, "ls /volumes /var/tmp/file 2>/dev/null; :", "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(line, sizeof(line), listen_line, "127.0.0.1", AF_INET);
#pragma GCC diagnostic pop
	subject_begin(joined, 2, line);
	subject_await_output(joined, 2, "ready");
	must_answer(id);
	must_answer(member);
	must_print(joined, 3, "echo one > /volumes/file; echo two > /var/tmp/file", "");
	/* It ends alone, */
	fd_close(joined);
	must_stop(member);
	must_print(link, 3, "echo here", "here\n");
	/* has its files again, */
	joined = must_join(member, id, 1);
	must_print(joined, 1, look, "one\ntwo\n");
	/* and ends with its sandbox, before a stop of that returns. */
	fd_close(link);
	must_stop(id);
	subject_expect_end(joined);
	fd_close(joined);
	must_stop(member);
	assert_false(is_listed(false, member));
	/* A delete keeps what is durable, a reset does not. */
	must_clean(id, DRIVER_PART_ALL);
	link = must_start(id);
	joined = must_join(member, id, 1);
	must_print(joined, 1, look, "one\n");
	fd_close(joined);
	fd_close(link);
	must_stop(id);
	must_stop(member);
	must_clean(id, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
	link = must_start(id);
	joined = must_join(member, id, 1);
	must_print(joined, 1, look, "");
	fd_close(joined);
	must_stop(member);
	discard(id, link);
}

static void a_member_joins_only_what_runs(void **state)
{
	char id[ID_LEN + 1], primary[ID_LEN + 1];
	struct driver_spec spec;
	struct driver_link link = {.fd = -1};
	struct walls walls;
	struct err err = {0};

	(void)state;
	NEEDS(DRIVER_MEMBERS);
	new_id(id);
	new_id(primary);
	spec = subject_spec(id);
	spec.joins = primary;
	spec.member = 1;
	spec.resources.disk_bytes = 0;
	assert_true(driver->ops->start(driver, &spec, NULL, &link, &walls, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_false(is_listed(false, id));
}

static void close_sockets(const struct driver_egress_sockets *sockets)
{
	fd_close(sockets->proxy_fd);
	fd_close(sockets->dns_fd);
	fd_close(sockets->dns_stream_fd);
}

/* A connection to anywhere ends at the daemon's socket, which sees where it was to go. */
static void every_connection_out_comes_to_the_daemon(void **state)
{
	struct driver_egress_sockets sockets, again;
	struct sockaddr_storage to;
	struct pollfd proxy = {.events = POLLIN};
	socklen_t len = sizeof(to);
	char id[ID_LEN + 1];
	struct driver_spec spec;
	struct err err = {0};
	int link, conn;

	(void)state;
	NEEDS(DRIVER_EGRESS_POLICY);
	NEEDS_AGENT;
	new_id(id);
	spec = subject_spec(id);
	spec.network = DRIVER_NETWORK_JUDGED;
	link = must_start_as(&spec);
	assert_int_equal(driver->ops->open_egress_sockets(driver, id, &sockets, &err), 0);
	assert_int_equal(driver->ops->open_egress_sockets(driver, id, &again, &err), 0);
	close_sockets(&again);
	if (!sockets.is_transparent)
		fail_msg("not proven: the kernel leads no connection to the socket");
	subject_begin(link, 1, "exec /bin/bash -c 'exec 3<>/dev/tcp/192.0.2.7/81; cat <&3'");
	proxy.fd = sockets.proxy_fd;
	assert_int_equal(poll(&proxy, 1, SUBJECT_PATIENCE_MS), 1);
	conn = accept4(sockets.proxy_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(conn >= 0);
	assert_int_equal(getsockname(conn, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(ntohs(to.ss_family == AF_INET ? ((struct sockaddr_in *)&to)->sin_port
						       : ((struct sockaddr_in6 *)&to)->sin6_port),
		81);
	close(conn);
	close_sockets(&sockets);
	discard(id, link);
}

/* --- the end --- */

/* The last test: nothing can be started afterwards. */
static void a_shutdown_ends_what_runs(void **state)
{
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	new_id(id);
	link = must_start(id);
	if (driver->ops->shutdown(driver, &err) < 0)
		fail_msg("%s", err.message);
	subject_expect_end(link);
	close(link);
}

static int begin(void **state)
{
	(void)state;
	subject->begin();
	driver = subject->open();
	return 0;
}

static int finish(void **state)
{
	(void)state;
	if (driver)
		subject->close(driver);
	subject->finish();
	return 0;
}

int main(int argc, char *argv[])
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_every_function_that_it_must_have),
		cmocka_unit_test(it_has_the_functions_of_its_capabilities),
		cmocka_unit_test(one_that_serves_says_so),
		cmocka_unit_test(what_does_not_run_is_not_found),
		cmocka_unit_test(ending_and_removing_nothing_is_fine),
		cmocka_unit_test(a_started_sandbox_is_listed_until_it_is_stopped),
		cmocka_unit_test(progress_is_told_until_a_start_returns),
		cmocka_unit_test(what_a_driver_cannot_mount_is_refused),
		cmocka_unit_test(a_whole_disk_has_not_failed_and_needs_no_repair),
		cmocka_unit_test(files_are_located_in_words),
		cmocka_unit_test(a_second_start_is_refused_and_the_first_runs_on),
		cmocka_unit_test(what_runs_cannot_be_cleaned),
		cmocka_unit_test(several_are_listed_in_order),
		cmocka_unit_test(channels_are_side_by_side_and_of_one_run_of_a_sandbox),
		cmocka_unit_test(stop_tells_how_one_had_ended_by_itself),
		cmocka_unit_test(a_sandbox_is_what_its_spec_says),
		cmocka_unit_test(a_workspace_outlives_a_stop_and_a_delete_but_no_purge),
		cmocka_unit_test(files_stay_the_sandbox_s_own_over_a_new_daemon),
		cmocka_unit_test(a_reset_empties_system_and_scratch),
		cmocka_unit_test(what_a_sandbox_has_written_can_be_read),
		cmocka_unit_test(a_layer_is_shown_to_a_running_sandbox),
		cmocka_unit_test(a_sandbox_starts_from_a_stack_of_layers),
		cmocka_unit_test(changes_are_told_beside_what_was_there),
		cmocka_unit_test(a_snapshot_is_all_files_at_one_moment),
		cmocka_unit_test(a_snapshot_may_be_used_up),
		cmocka_unit_test(a_snapshot_that_is_not_used_up_goes),
		cmocka_unit_test(files_stay_if_there_is_no_such_snapshot),
		cmocka_unit_test(a_running_sandbox_is_shown_the_files_of_a_project),
		cmocka_unit_test(a_frozen_sandbox_uses_no_processor),
		cmocka_unit_test(a_disk_takes_as_much_as_its_limit),
		cmocka_unit_test(a_limit_that_is_changed_holds),
		cmocka_unit_test(a_limit_below_what_is_in_use_is_refused),
		cmocka_unit_test(a_running_sandbox_gets_another_host_name),
		cmocka_unit_test(a_terminal_is_one),
		cmocka_unit_test(root_inside_has_no_power_over_pid_1),
		cmocka_unit_test(an_adopted_sandbox_goes_on),
		cmocka_unit_test(an_isolated_command_sees_itself_alone),
		cmocka_unit_test(a_port_is_dialled_on_either_loopback),
		cmocka_unit_test(a_member_shares_network_and_workspace_alone),
		cmocka_unit_test(a_member_joins_only_what_runs),
		cmocka_unit_test(every_connection_out_comes_to_the_daemon),
		cmocka_unit_test(a_shutdown_ends_what_runs),
	};

	subject = argc == 2 ? subject_find(argv[1]) : NULL;
	if (!subject) {
		fprintf(stderr, "usage: %s DRIVER\n", argv[0]);
		return 2;
	}
	log_open("test", LOG_ERROR);
	return cmocka_run_group_tests(tests, begin, finish);
}
