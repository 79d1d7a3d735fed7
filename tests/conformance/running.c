/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox must be inside while it runs, and how that can be changed. */
#include "base/clock.h"
#include "base/fd.h"
#include "core_fixture.h"
#include "suite.h"
#include "wire/agent.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void a_sandbox_is_what_its_spec_says(void **state)
{
	struct driver_stats stats;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1, "uname -n; id -u; pwd", "box\n0\n/\n");
	assert_int_equal(driver->ops->stats(driver, id, &stats, &err), 0);
	if (subject->has_limits) {
		assert_int_equal(stats.memory_limit_bytes, SUBJECT_MEMORY);
		assert_int_equal(stats.pids_limit, SUBJECT_PIDS);
		assert_true(stats.memory_bytes > 0 && stats.pids > 0 && stats.cpu_us > 0);
	}
	discard(id, link);
}

#define FROZEN_MS 300

void a_frozen_sandbox_uses_no_processor(void **state)
{
	uint64_t begun_ms;
	struct driver_stats before, after;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS(DRIVER_FREEZE);
	new_id(id);
	link = must_start(id);
	if (subject->has_agent) {
		subject_begin(link, 1, "echo busy; while :; do :; done");
		subject_await_output(link, 1, "busy");
	}
	assert_int_equal(driver->ops->freeze(driver, id, true, &err), 0);
	assert_int_equal(driver->ops->freeze(driver, id, true, &err), 0);
	begun_ms = clock_steady_ms();
	assert_int_equal(driver->ops->stats(driver, id, &before, &err), 0);
	do
		assert_int_equal(driver->ops->stats(driver, id, &after, &err), 0);
	while (clock_steady_ms() < begun_ms + FROZEN_MS);
	/* What it used last may be counted a little later; a loop would have used it all. */
	assert_true(after.cpu_us - before.cpu_us < FROZEN_MS * 1000 / 10);
	assert_int_equal(driver->ops->freeze(driver, id, false, &err), 0);
	if (subject->has_agent)
		must_print(link, 2, "echo thawed", "thawed\n");
	/* One that is frozen can be ended. */
	assert_int_equal(driver->ops->freeze(driver, id, true, &err), 0);
	discard(id, link);
}

void a_disk_takes_as_much_as_its_limit(void **state)
{
	static const char fill[] = "head -c 24m /dev/zero > /var/tmp/fill && echo whole";
	struct driver_usage usage;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link, status;

	(void)state;
	NEEDS(DRIVER_DISK_LIMIT);
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	assert_non_null(strstr(subject_run(link, 1, fill, &status), "No space left"));
	assert_int_equal(driver->ops->usage(driver, id, &usage, &err), 0);
	assert_true(usage.bytes > SUBJECT_DISK / 2 && usage.bytes <= SUBJECT_DISK);
	assert_true(usage.files > 0 && usage.files_limit > 0);
	if (driver_can(driver, DRIVER_LIVE_RESIZE)) {
		assert_int_equal(driver->ops->resize(driver, id, 3 * SUBJECT_DISK, 0, &err), 0);
		assert_int_equal(driver->ops->set_limits(driver, id,
					 &(struct resources){.cpu_millis = 2000,
						 .memory_bytes = 512u << 20,
						 .pids = 200},
					 false, &err),
			0);
		must_print(link, 2, fill, "whole\n");
	}
	discard(id, link);
}

/* --- limits --- */

static const char fork_line[] = "exec /usr/bin/python3 -c '\n"
				"import os, signal\n"
				"pids = []\n"
				"try:\n"
				"  while len(pids) < 40:\n"
				"    pid = os.fork()\n"
				"    if not pid: signal.pause()\n"
				"    pids.append(pid)\n"
				"  print(\"all\")\n"
				"except OSError: print(\"refused\")\n"
				"for pid in pids: os.kill(pid, 9)\n"
				"'";

static const char hold_line[] = "head -c 80m /dev/zero | tail -c 80m | wc -c";
static const char held[] = "83886080\n";

void a_limit_that_is_changed_holds(void **state)
{
	struct resources less = {.cpu_millis = 500, .memory_bytes = 48u << 20, .pids = 16};
	struct resources more = {.cpu_millis = 1000, .memory_bytes = 256u << 20, .pids = 128};
	struct driver_stats stats;
	char id[ID_LEN + 1];
	struct err err = {0};
	int link, status;

	(void)state;
	NEEDS(DRIVER_LIVE_RESIZE);
	NEEDS_AGENT;
	new_id(id);
	assert_not_found(driver->ops->set_limits(driver, id, &more, false, &err), &err);
	link = must_start(id);
	must_print(link, 1, fork_line, "all\n");
	assert_int_equal(driver->ops->set_limits(driver, id, &less, false, &err), 0);
	assert_int_equal(driver->ops->stats(driver, id, &stats, &err), 0);
	assert_int_equal(stats.memory_limit_bytes, less.memory_bytes);
	assert_int_equal(stats.pids_limit, less.pids);
	must_print(link, 2, fork_line, "refused\n");
	assert_string_not_equal(subject_run(link, 3, hold_line, &status), held);
	assert_int_equal(driver->ops->stats(driver, id, &stats, &err), 0);
	assert_true(stats.oom_kills > 0);
	assert_int_equal(driver->ops->set_limits(driver, id, &more, true, &err), 0);
	must_print(link, 4, fork_line, "all\n");
	must_print(link, 5, hold_line, held);
	discard(id, link);
}

void a_limit_below_what_is_in_use_is_refused(void **state)
{
	struct resources less = {.cpu_millis = 1000, .memory_bytes = 32u << 20, .pids = 64};
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS(DRIVER_LIVE_RESIZE);
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	subject_begin(link, 1,
		"x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo held ${#x}; exec 3<&0; "
		"while :; do sleep 1; done");
	subject_await_output(link, 1, "held 60000000");
	assert_true(driver->ops->set_limits(driver, id, &less, false, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_string_equal(err.code, "memory_in_use");
	must_print(link, 2, "echo here", "here\n");
	discard(id, link);
}

/* --- names, terminals, PID 1 --- */

void a_running_sandbox_gets_another_host_name(void **state)
{
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	if (!driver->ops->set_hostname)
		skip();
	assert_not_found(driver->ops->set_hostname(driver, id, "other", &err), &err);
	link = must_start(id);
	assert_int_equal(driver->ops->set_hostname(driver, id, "other", &err), 0);
	must_print(link, 1, "uname -n", "other\n");
	discard(id, link);
}

/* What is typed comes back with what is written, and the size is the command's. */
void a_terminal_is_one(void **state)
{
	static const uint8_t size[] = {100, 0, 30, 0};
	char id[ID_LEN + 1];
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	subject_begin_as(link, 1, AGENT_EXEC_PTY | AGENT_EXEC_STDIN,
		"tty >/dev/null && echo ready; read -r line; stty size; echo \"got $line\"");
	subject_await_output(link, 1, "ready");
	wire_write(link, AGENT_RESIZE, 1, size, sizeof(size));
	wire_write(link, AGENT_STDIN, 1, "typed\n", 6);
	subject_await_output(link, 1, "30 100\r\ngot typed\r\n");
	discard(id, link);
}

/* Root inside neither ends PID 1 nor finds what it was started with. */
void root_inside_has_no_power_over_pid_1(void **state)
{
	char id[ID_LEN + 1];
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1,
		"for signal in TERM KILL HUP INT CHLD STOP; do kill -$signal 1 2>/dev/null; done; "
		"tr '\\0' '\\n' 2>/dev/null </proc/1/environ | grep -E '[0-9a-f]{64}'; :",
		"");
	must_print(link, 2, "echo here", "here\n");
	must_stat(id, "/");
	discard(id, link);
}
