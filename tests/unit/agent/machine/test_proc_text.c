/* SPDX-License-Identifier: Apache-2.0 */
/* Over directories that look like the control groups of a sandbox, on hosts of each kind. */
#include "agent/machine/proc_text.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MI (1024ull * 1024)

static char root[64], online[96];
static struct proc_text proc_text;

static void make_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_vitals.XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(online, sizeof(online), "%s/online", root);
	make_file("online", "0\n");
	proc_text_init(&proc_text);
	proc_text.cgroups = root;
	proc_text.online = online;
	proc_text.total_bytes = 8192 * MI;
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* The number after a label that starts a line. */
static uint64_t number(const char *text, const char *label)
{
	const char *at = text;

	while (at && strncmp(at, label, strlen(label)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		fail_msg("no line %s in:\n%s", label, text);
	return strtoull(at + strlen(label), NULL, 10);
}

static char *meminfo(void)
{
	struct buf buf = BUF_INIT(PROC_TEXT_TEXT_MAX);

	proc_text_put_meminfo(&proc_text, &buf);
	return buf_take_str(&buf);
}

static char *stat_text(void)
{
	struct buf buf = BUF_INIT(PROC_TEXT_TEXT_MAX);

	proc_text_put_stat(&proc_text, &buf);
	return buf_take_str(&buf);
}

static void make_v2(const char *usage)
{
	make_file("memory.max", "268435456\n");
	make_file("memory.current", usage);
	make_file("memory.stat",
		"anon 31457280\nfile 4194304\nkernel_stack 16384\npagetables 8192\n"
		"shmem 1048576\nfile_mapped 2097152\ninactive_anon 1\nactive_anon 31457279\n"
		"inactive_file 2097152\nactive_file 1048576\nslab_reclaimable 1048576\n"
		"slab_unreclaimable 524288\n");
}

static void assert_memory(const char *text)
{
	assert_int_equal(number(text, "MemTotal:"), 256 * 1024);
	assert_int_equal(number(text, "MemFree:"), (256 - 40) * 1024);
	assert_int_equal(number(text, "Cached:"), 4 * 1024);
	assert_int_equal(number(text, "AnonPages:"), 30 * 1024);
	assert_int_equal(number(text, "Shmem:"), 1024);
	assert_int_equal(number(text, "SwapTotal:"), 0);
}

static void memory_comes_from_the_v2_group(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	make_v2("41943040\n");
	text = meminfo();
	assert_memory(text);
	assert_int_equal(number(text, "MemAvailable:"), (256 - 40 + 4) * 1024);
	assert_int_equal(number(text, "Slab:"), 1536);
	assert_memory_equal(text, "MemTotal:         262144 kB\nMemFree: ", 36);
}

static void memory_comes_from_the_v1_group_where_there_is_one(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	make_dir("memory");
	make_dir("unified");
	make_file("memory/memory.limit_in_bytes", "268435456\n");
	make_file("memory/memory.usage_in_bytes", "41943040\n");
	make_file("memory/memory.stat",
		"cache 1\nrss 2\nshmem 3\ntotal_cache 4194304\ntotal_rss 31457280\n"
		"total_shmem 1048576\ntotal_inactive_file 2097152\ntotal_active_file 1048576\n");
	text = meminfo();
	assert_memory(text);
	assert_int_equal(number(text, "MemAvailable:"), (256 - 40 + 3) * 1024);
}

static void memory_is_never_more_than_the_host_has(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	make_v2("41943040\n");
	make_file("memory.max", "1125899906842624\n");
	text = meminfo();
	assert_int_equal(number(text, "MemTotal:"), 8192 * 1024);
}

static void no_number_is_more_than_the_total(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	make_v2("300000000\n");
	make_file("memory.stat", "file 99999999999999\n");
	text = meminfo();
	assert_int_equal(number(text, "MemFree:"), 0);
	assert_int_equal(number(text, "Cached:"), 256 * 1024);
}

static void a_text_has_the_same_length_each_time(void **state)
{
	auto_free char *before = NULL, *after = NULL, *idle = NULL, *busy = NULL;

	(void)state;
	make_v2("0\n");
	make_file("memory.stat", "anon 0\n");
	make_file("cpu.stat", "usage_usec 0\nuser_usec 0\nsystem_usec 0\n");
	before = meminfo();
	idle = stat_text();
	make_v2("268435456\n");
	make_file("cpu.stat", "usage_usec 0\nuser_usec 9000000000000\nsystem_usec 7000000\n");
	after = meminfo();
	busy = stat_text();
	assert_string_not_equal(before, after);
	assert_int_equal(strlen(before), strlen(after));
	assert_string_not_equal(idle, busy);
	assert_int_equal(strlen(idle), strlen(busy));
}

static void processor_time_is_shared_out_and_the_rest_is_idle(void **state)
{
	unsigned long long user, nice, system, idle;
	auto_free char *text = NULL;

	(void)state;
	make_dir("unified");
	make_file("unified/cpu.stat", "usage_usec 30000000\nuser_usec 20000000\nsystem_usec "
				      "10000000\nnr_periods 0\n");
	make_file("online", "0-3\n");
	proc_text.started_us = clock_steady_us() - 100000000;
	text = stat_text();
	assert_int_equal(sscanf(text, "cpu %llu %llu %llu %llu", &user, &nice, &system, &idle), 4);
	assert_int_equal(user, 2000);
	assert_int_equal(nice, 0);
	assert_int_equal(system, 1000);
	assert_in_range(idle, 4 * 10000 - 3000, 4 * 10000 - 3000 + 400);
	assert_int_equal(number(text, "cpu0"), 500);
	assert_int_equal(number(text, "cpu3"), 500);
	assert_null(strstr(text, "cpu4"));
}

static void idle_time_is_never_below_zero(void **state)
{
	unsigned long long user, nice, system, idle;
	auto_free char *text = NULL;

	(void)state;
	make_file("cpu.stat", "usage_usec 9000000\nuser_usec 9000000\nsystem_usec 0\n");
	text = stat_text();
	assert_int_equal(sscanf(text, "cpu %llu %llu %llu %llu", &user, &nice, &system, &idle), 4);
	assert_int_equal(idle, 0);
}

static void the_time_of_boot_is_the_hosts(void **state)
{
	auto_free char *text = NULL;
	char line[256];
	FILE *file = fopen("/proc/stat", "re");
	uint64_t host = 0;

	(void)state;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "btime ", 6) == 0)
			host = strtoull(line + 6, NULL, 10);
	}
	fclose(file);
	text = stat_text();
	assert_in_range(number(text, "btime "), host - 1, host + 1);
	assert_true(number(text, "processes ") > 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memory_comes_from_the_v2_group),
		CASE(memory_comes_from_the_v1_group_where_there_is_one),
		CASE(memory_is_never_more_than_the_host_has),
		CASE(no_number_is_more_than_the_total),
		CASE(a_text_has_the_same_length_each_time),
		CASE(processor_time_is_shared_out_and_the_rest_is_idle),
		CASE(idle_time_is_never_below_zero),
		CASE(the_time_of_boot_is_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
