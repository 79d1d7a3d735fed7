/* SPDX-License-Identifier: Apache-2.0 */
/* Victims of the kernel in lines of /dev/kmsg (src/keeper/kernel_log.c); names are chosen by the victims. */
#include "keeper/stats/kernel_log.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BEFORE "3,1234,56789012,-;Memory cgroup out of memory: Killed process 4711 ("
#define AFTER                                                                                      \
	") total-vm:123456kB, anon-rss:63488kB, file-rss:2048kB, shmem-rss:0kB, UID:1065536 "      \
	"pgtables:180kB oom_score_adj:0\n"

static void assert_victim(const char *line, uint32_t uid, const char *expected)
{
	char victim[KERNEL_LOG_VICTIM_MAX];
	uint32_t got = 0;

	assert_int_equal(kernel_log_parse(line, &got, victim), 0);
	assert_int_equal(got, uid);
	assert_string_equal(victim, expected);
}

static void assert_none(const char *line)
{
	char victim[KERNEL_LOG_VICTIM_MAX];
	uint32_t uid;

	assert_int_equal(kernel_log_parse(line, &uid, victim), -EINVAL);
}

static void a_victim_is_read_with_its_size_and_uid(void **state)
{
	(void)state;
	assert_victim(BEFORE "python3" AFTER, 1065536, "python3 (62 MiB)");
	/* Of the whole machine, and of other versions of the kernel. */
	assert_victim(
		"3,9,1,-;Out of memory: Killed process 1 (init) total-vm:1kB, anon-rss:1024kB, "
		"file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0\n",
		0, "init (1 MiB)");
	assert_victim("3,9,1,-,caller=T55;Memory cgroup out of memory: Killed process 7 (node) "
		      "total-vm:1kB, anon-rss:2047kB, file-rss:0kB, shmem-rss:0kB, UID:4294967294 "
		      "pgtables:40kB oom_score_adj:1000\n SUBSYSTEM=mm\n",
		4294967294, "node (1 MiB)");
}

static void a_name_may_hold_what_looks_like_the_end_of_it(void **state)
{
	(void)state;
	assert_victim(BEFORE ") total-vm:1kB" AFTER, 1065536, ")?total-vm:1kB (62 MiB)");
	assert_victim(BEFORE "x) total-vm:1" AFTER, 1065536, "x)?total-vm:1 (62 MiB)");
	assert_victim(BEFORE "(((" AFTER, 1065536, "((( (62 MiB)");
	assert_victim(BEFORE "UID:1 anon-rss:" AFTER, 1065536, "UID:1?anon-rss: (62 MiB)");
	assert_victim(BEFORE "Killed process " AFTER, 1065536, "Killed?process? (62 MiB)");
}

static void a_name_is_shown_as_far_as_it_is_plain(void **state)
{
	(void)state;
	assert_victim(BEFORE "my prog" AFTER, 1065536, "my?prog (62 MiB)");
	assert_victim(BEFORE "a\\x0ab\tc\x1b[31m" AFTER, 1065536, "a\\x0ab?c?[31m (62 MiB)");
	assert_victim(BEFORE "gr\xc3\xbc\xc3\x9f" AFTER, 1065536, "gr???? (62 MiB)");
	assert_victim(BEFORE "" AFTER, 1065536, " (62 MiB)");
	/* Longer than any name is, and larger than any memory: never beyond the room there is. */
	assert_victim(BEFORE "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd" AFTER, 1065536,
		"aaaaaaaaaabbbbbbbbbbccc (62 MiB)");
	assert_victim("3,1,1,-;Out of memory: Killed process 1 (aaaaaaaaaabbbbbbbbbbcccccccccc) "
		      "total-vm:1kB, anon-rss:18446744073709551615kB, file-rss:0kB, UID:5 p",
		5, "aaaaaaaaaabbbbbbbbbbccc (18014398509481983 MiB)");
}

static void a_line_without_a_victim_has_none(void **state)
{
	(void)state;
	assert_none("");
	assert_none("\n");
	assert_none("6,1,1,-;usb 1-1: new high-speed USB device\n");
	assert_none("3,1,1,-;Killed process ");
	assert_none("3,1,1,-;Memory cgroup out of memory: Killed process 1 (");
	assert_none("3,1,1,-;Memory cgroup out of memory: Killed process 1 (x");
	assert_none("3,1,1,-;Memory cgroup out of memory: Killed process 1 (x)");
	assert_none("3,1,1,-;Memory cgroup out of memory: Killed process 1 (x) total-vm:1kB\n");
	assert_none("6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
		    "mems_allowed=0,oom_memcg=/sandlot/x,task_memcg=/sandlot/x/1,task=python3,"
		    "pid=4711,uid=1065536\n");
	assert_none("6,1,1,-;oom_reaper: reaped process 4711 (python3), now anon-rss:0kB, "
		    "file-rss:0kB, shmem-rss:0kB\n");
}

static void a_line_that_lacks_a_number_has_none(void **state)
{
	(void)state;
	assert_none("3,1,1,-;Out of memory: Killed process 1 (x) total-vm:1kB, anon-rss:2kB, "
		    "file-rss:0kB pgtables:1kB\n");
	assert_none("3,1,1,-;Out of memory: Killed process 1 (x) total-vm:1kB, UID:7 pgtables:1\n");
	assert_none(
		"3,1,1,-;Out of memory: Killed process 1 (x) total-vm:1kB, anon-rss:2kB, UID:\n");
	assert_none(
		"3,1,1,-;Out of memory: Killed process 1 (x) total-vm:1kB, anon-rss:kB, UID:7 \n");
}

/*
 * The kernel prints the name of the file in which a program crashed, and whoever is in a sandbox chooses that.
 * So only a line that begins as such a line does tells of a victim; else anyone could forge one for anybody.
 */
static void a_line_of_another_kind_that_quotes_such_a_line_has_none(void **state)
{
	(void)state;
	assert_none(
		"6,7,8,-;evil[99]: segfault at 0 ip 0000000000401136 sp 00007ffd2a9c error 6 in "
		"Killed process 1 (sshd) total-vm:1kB, anon-rss:9999kB, UID:1131072 "
		"pgtables[401000+1000] likely on CPU 0 (core 0, socket 0)\n");
	assert_none("6,7,8,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/s,task_memcg=/s/"
		    "Memory cgroup out of memory: Killed process 1 (sshd) total-vm:1kB, "
		    "anon-rss:9999kB, UID:1131072 pgtables,task=x,pid=1,uid=1\n");
}

/* --- reading: a socket of packets plays the device --- */

struct seen {
	unsigned count;
	uint32_t uids[8];
	char last[KERNEL_LOG_VICTIM_MAX];
};

static void see(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX])
{
	struct seen *seen = arg;

	if (seen->count < array_len(seen->uids))
		seen->uids[seen->count] = uid;
	seen->count++;
	snprintf(seen->last, sizeof(seen->last), "%s", victim);
}

static void each_victim_since_the_last_time_is_told(void **state)
{
	static const char *const lines[] = {
		BEFORE "one" AFTER, "6,1,1,-;eth0: link up\n", BEFORE "two" AFTER};
	struct seen seen = {0};
	int pair[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	kernel_log_read(pair[0], see, &seen);
	assert_int_equal(seen.count, 0);
	for (size_t i = 0; i < array_len(lines); i++)
		assert_true(send(pair[1], lines[i], strlen(lines[i]), 0) > 0);
	kernel_log_read(pair[0], see, &seen);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.uids[0], 1065536);
	assert_string_equal(seen.last, "two (62 MiB)");
	kernel_log_read(pair[0], see, &seen);
	assert_int_equal(seen.count, 2);
	close(pair[0]);
	close(pair[1]);
}

static void a_line_of_the_greatest_length_is_no_harm(void **state)
{
	char line[8192];
	struct seen seen = {0};
	int pair[2];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, BEFORE, strlen(BEFORE));
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(send(pair[1], line, sizeof(line), 0) > 0);
	kernel_log_read(pair[0], see, &seen);
	assert_int_equal(seen.count, 0);
	close(pair[0]);
	close(pair[1]);
}

static void a_host_that_does_not_let_us_read_has_no_victims(void **state)
{
	struct seen seen = {0};

	(void)state;
	kernel_log_read(-1, see, &seen);
	assert_int_equal(seen.count, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_victim_is_read_with_its_size_and_uid),
		cmocka_unit_test(a_name_may_hold_what_looks_like_the_end_of_it),
		cmocka_unit_test(a_name_is_shown_as_far_as_it_is_plain),
		cmocka_unit_test(a_line_without_a_victim_has_none),
		cmocka_unit_test(a_line_that_lacks_a_number_has_none),
		cmocka_unit_test(a_line_of_another_kind_that_quotes_such_a_line_has_none),
		cmocka_unit_test(each_victim_since_the_last_time_is_told),
		cmocka_unit_test(a_line_of_the_greatest_length_is_no_harm),
		cmocka_unit_test(a_host_that_does_not_let_us_read_has_no_victims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
