/* SPDX-License-Identifier: Apache-2.0 */
/* doctor is shown hosts that have this or that wrong, as trees of files below a directory. */
#include "base/fd.h"
#include "base/mem.h"
#include "doctor/host_check.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/sandlot-host-XXXXXX";
static int root_fd;

static void put(const char *path, const char *text)
{
	char partial[256];
	auto_fd int fd = -1;

	snprintf(partial, sizeof(partial), "%s", path);
	for (char *slash = strchr(partial, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdirat(root_fd, partial, 0755);
		*slash = '/';
	}
	fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static struct finding look_as(const char *name, bool is_root)
{
	struct host host = {.root_fd = root_fd,
		.is_root = is_root,
		.kernel_major = 5,
		.kernel_minor = 10,
		.kernel = "5.10.0"};
	struct finding f = {0};

	for (size_t i = 0; i < host_check_count; i++) {
		if (strcmp(host_checks[i].name, name) == 0) {
			host_checks[i].look(&host, &f);
			return f;
		}
	}
	fail_msg("there is no check %s", name);
	return f;
}

static struct finding look(const char *name)
{
	return look_as(name, true);
}

static void expect_problem(const char *name, enum finding_level level, const char *mend)
{
	struct finding f = look(name);

	assert_int_equal(f.level, level);
	assert_non_null(f.why);
	assert_non_null(strstr(f.mend, mend));
	assert_true(f.fact[0]);
}

static void expect_ok(const char *name)
{
	struct finding f = look(name);

	assert_int_equal(f.level, FINDING_OK);
	assert_null(f.why);
	assert_string_equal(f.mend, "");
}

static void an_ordinary_user_needs_newuidmap_and_ids(void **state)
{
	char line[64];

	(void)state;
	expect_ok("lent-ids");
	assert_int_equal(look_as("privilege", false).level, FINDING_WARN);
	assert_non_null(strstr(look_as("lent-ids", false).mend, "apt-get install uidmap"));
	put("usr/bin/newuidmap", "");
	put("etc/subuid", "somebody:100000:65536\n");
	assert_int_equal(look_as("lent-ids", false).level, FINDING_FAIL);
	assert_non_null(strstr(look_as("lent-ids", false).mend,
		"usermod --add-subuids 165536-231071 --add-subgids 100000-165535"));
	snprintf(line, sizeof(line), "%u:200000:65536\n", geteuid());
	put("etc/subuid", line);
	put("etc/subgid", line);
	assert_int_equal(look_as("lent-ids", false).level, FINDING_OK);
}

static void an_ordinary_user_wants_a_cgroup_of_its_own(void **state)
{
	(void)state;
	expect_ok("cgroup-delegation");
	assert_int_equal(look_as("cgroup-delegation", false).level, FINDING_WARN);
	put("proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
	put("proc/self/cgroup", "0::/user.slice/run.scope\n");
	assert_non_null(strstr(look_as("cgroup-delegation", false).mend, "Delegate=yes"));
	put("sys/fs/cgroup/user.slice/run.scope/cgroup.procs", "");
	assert_int_equal(look_as("cgroup-delegation", false).level, FINDING_OK);
}

static void an_old_kernel_fails(void **state)
{
	(void)state;
	expect_problem("kernel", FINDING_FAIL, "upgrade");
	expect_problem("idmapped-mounts", FINDING_FAIL, "upgrade");
}

static void user_namespaces_that_are_off_fail(void **state)
{
	(void)state;
	put("proc/sys/user/max_user_namespaces", "0\n");
	put("proc/sys/user/max_net_namespaces", "60000\n");
	expect_problem("namespace-limits", FINDING_FAIL, "user.max_user_namespaces=");
	put("proc/sys/user/max_user_namespaces", "60000\n");
	put("proc/sys/user/max_net_namespaces", "10\n");
	expect_problem("namespace-limits", FINDING_WARN, "user.max_net_namespaces=");
	put("proc/sys/user/max_net_namespaces", "60000\n");
	expect_ok("namespace-limits");
}

static void rules_against_unprivileged_namespaces_are_named(void **state)
{
	(void)state;
	expect_ok("userns-policy");
	put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
	expect_problem("userns-policy", FINDING_WARN, "apparmor_restrict_unprivileged_userns=0");
	put("proc/sys/kernel/unprivileged_userns_clone", "0\n");
	expect_problem("userns-policy", FINDING_FAIL, "unprivileged_userns_clone=1");
}

static void a_mount_below_usr_is_in_the_way_of_an_ordinary_user(void **state)
{
	struct finding f;

	(void)state;
	put("proc/filesystems", "nodev\toverlay\n\text4\n");
	put("proc/self/mounts", "/dev/a / ext4 rw 0 0\n/dev/b /usr ext4 rw 0 0\n"
				"none /mnt overlay rw,lowerdir=/usr/share 0 0\n");
	assert_int_equal(look_as("overlayfs", false).level, FINDING_OK);
	put("proc/self/mounts", "/dev/a / ext4 rw 0 0\n/dev/b /usr/local ext4 rw 0 0\n");
	f = look_as("overlayfs", false);
	assert_int_equal(f.level, FINDING_FAIL);
	assert_string_equal(f.fact, "/usr/local is a mount of its own");
	assert_string_equal(f.mend, "sudo sandlotd");
	expect_ok("overlayfs");
}

static void a_host_without_overlay_fails(void **state)
{
	(void)state;
	put("proc/filesystems", "nodev\tsysfs\n\text4\nnodev\toverlayx\n");
	expect_problem("overlayfs", FINDING_FAIL, "modprobe overlay");
	put("proc/filesystems", "nodev\tsysfs\nnodev\toverlay\n\text4\n");
	expect_ok("overlayfs");
}

static void controllers_are_found_on_either_version(void **state)
{
	(void)state;
	put("proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n");
	put("cg/cgroup.controllers", "cpuset cpu io pids\n");
	expect_problem("cgroup-limits", FINDING_FAIL, "cgroup");
	put("proc/self/mounts", "cgroup /m cgroup rw,memory 0 0\ncgroup2 /cg cgroup2 rw 0 0\n");
	expect_ok("cgroup-limits");
	assert_non_null(strstr(look("cgroup-limits").fact, "memory on v1, cpu on v2"));
	put("proc/self/mounts", "tmpfs /tmp tmpfs rw 0 0\n");
	expect_problem("cgroup-kill", FINDING_WARN, "mount -t cgroup2");
}

static void a_core_pattern_that_is_a_pipe_is_a_warning(void **state)
{
	(void)state;
	put("proc/sys/kernel/core_pattern", "|/usr/share/apport/apport -p%p\n");
	expect_problem("core-pattern", FINDING_WARN, "kernel.core_pattern=core");
	put("proc/sys/kernel/core_pattern", "@/run/crashes.sock\n");
	expect_problem("core-pattern", FINDING_WARN, "kernel.core_pattern=core");
	put("proc/sys/kernel/core_pattern", "core\n");
	expect_ok("core-pattern");
}

static void processes_that_change_their_user_must_not_be_dumpable(void **state)
{
	(void)state;
	put("proc/sys/fs/suid_dumpable", "1\n");
	expect_problem("suid-dumpable", FINDING_WARN, "fs.suid_dumpable=0");
	put("proc/sys/fs/suid_dumpable", "2\n");
	expect_ok("suid-dumpable");
}

static void the_limit_that_is_too_low_for_all_is_named(void **state)
{
	(void)state;
	put("proc/sys/kernel/pid_max", "4194304\n");
	expect_ok("shared-limits");
	put("proc/sys/kernel/pty/max", "256\n");
	expect_problem("shared-limits", FINDING_WARN, "kernel.pty.max=4096");
	put("proc/sys/kernel/pid_max", "32768\n");
	expect_problem("shared-limits", FINDING_WARN, "kernel.pid_max=131072");
}

static void project_quotas_need_no_images(void **state)
{
	(void)state;
	put("proc/self/mounts", "/dev/a / ext4 rw,prjquota 0 0\n");
	expect_ok("disk-limits");
	put("proc/self/mounts",
		"/dev/a / ext4 rw,prjquota 0 0\n/dev/b /var/lib ext4 rw,usrquota 0 0\n");
	expect_problem("disk-limits", FINDING_WARN, "modprobe loop");
	put("proc/self/mounts", "/dev/a / ext4 rw 0 0\n/dev/b /var/lib xfs rw,prjquota 0 0\n"
				"/dev/c /var/lib/sand ext4 rw 0 0\n");
	expect_ok("disk-limits");
	assert_int_equal(look_as("disk-limits", false).level, FINDING_WARN);
	put("proc/self/mounts", "");
}

static void images_need_loop_devices_and_ext4(void **state)
{
	(void)state;
	put("proc/filesystems", "nodev\toverlay\n\text4\n");
	expect_problem("disk-limits", FINDING_WARN, "modprobe loop");
	put("dev/loop-control", "");
	expect_ok("disk-limits");
	put("proc/filesystems", "nodev\toverlay\n");
	expect_problem("disk-limits", FINDING_WARN, "modprobe ext4");
}

static void io_uring_that_is_on_is_a_warning(void **state)
{
	(void)state;
	put("proc/sys/kernel/io_uring_disabled", "0\n");
	expect_problem("io_uring", FINDING_WARN, "io_uring_disabled=2");
	put("proc/sys/kernel/io_uring_disabled", "2\n");
	expect_ok("io_uring");
}

static void a_kernel_without_seccomp_fails(void **state)
{
	(void)state;
	put("proc/self/status", "Name:\tx\nNoNewPrivs:\t0\n");
	expect_problem("seccomp", FINDING_FAIL, "CONFIG_SECCOMP");
	put("proc/self/status", "Name:\tx\nSeccomp:\t0\n");
	expect_ok("seccomp");
}

static void no_probe_leaves_anything_behind(void **state)
{
	struct host host;
	int probe;

	(void)state;
	host_check_init(&host, root_fd);
	for (size_t i = 0; i < host_check_count; i++) {
		struct finding f = {0};

		host_checks[i].look(&host, &f);
		assert_true(f.fact[0]);
		assert_int_equal(f.why != NULL, f.level != FINDING_OK);
	}
	/* The next free descriptor is the same as before all of them. */
	probe = dup(root_fd);
	assert_int_equal(probe, root_fd + 1);
	close(probe);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	auto_free char *command = mem_printf("rm -rf '%s'", root);

	(void)state;
	close(root_fd);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_user_needs_newuidmap_and_ids),
		cmocka_unit_test(an_ordinary_user_wants_a_cgroup_of_its_own),
		cmocka_unit_test(an_old_kernel_fails),
		cmocka_unit_test(user_namespaces_that_are_off_fail),
		cmocka_unit_test(rules_against_unprivileged_namespaces_are_named),
		cmocka_unit_test(a_mount_below_usr_is_in_the_way_of_an_ordinary_user),
		cmocka_unit_test(a_host_without_overlay_fails),
		cmocka_unit_test(controllers_are_found_on_either_version),
		cmocka_unit_test(a_core_pattern_that_is_a_pipe_is_a_warning),
		cmocka_unit_test(processes_that_change_their_user_must_not_be_dumpable),
		cmocka_unit_test(the_limit_that_is_too_low_for_all_is_named),
		cmocka_unit_test(project_quotas_need_no_images),
		cmocka_unit_test(images_need_loop_devices_and_ext4),
		cmocka_unit_test(io_uring_that_is_on_is_a_warning),
		cmocka_unit_test(a_kernel_without_seccomp_fails),
		cmocka_unit_test(no_probe_leaves_anything_behind),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
