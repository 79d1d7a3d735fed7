/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cgroup.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/mount/mounts.h"
#include "wire/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CPU_PERIOD_US	 100000
#define BACKGROUND_PART	 16 /* of the weight of others */
#define AGENT_MEMORY_MIN (64ull << 20)
#define BIND_TEXT_MAX	 65536 /* of one command: the numbers of some 8000 threads */

/* A group for each command that an agent can have, and some that it keeps or is about to remove. */
#define CHILDREN_MAX (AGENT_PROCESSES_MAX + 64)

static int write_number(int dirfd, const char *file, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return fd_write_file(dirfd, file, text);
}

static bool is_on_v2(const struct cgroup_tree *tree, enum cgroup_controller c)
{
	return tree->v1_fd[c] < 0 && cgroup_tree_has(tree, c);
}

static int limit_v2(const struct cgroup_tree *tree, enum cgroup_controller c, int fd,
	const struct keeper_limits *limits)
{
	char cpu_max[48];
	int r = 0;

	if (!is_on_v2(tree, c))
		return 0;
	switch (c) {
	case CGROUP_MEMORY:
		r = write_number(fd, "memory.max", limits->memory_bytes);
		/* A kernel without swap accounting has no such file, and then no swap to limit. */
		if (r == 0 && (r = write_number(fd, "memory.swap.max", 0)) == -ENOENT)
			r = 0;
		break;
	case CGROUP_CPU:
		snprintf(cpu_max, sizeof(cpu_max), "%llu %d",
			(unsigned long long)(limits->cpu_millis * CPU_PERIOD_US / 1000),
			CPU_PERIOD_US);
		r = fd_write_file(fd, "cpu.max", cpu_max);
		break;
	case CGROUP_PIDS:
		r = write_number(fd, "pids.max", limits->pids);
		break;
	case CGROUP_COUNT:
		break;
	}
	return r;
}

/*
 * Gives uid the directory and the two files that decide which processes may move below it; no file
 * that limits. Cgroups cost kernel memory that no limit counts, so their number is bounded first.
 */
static int delegate(int fd, uint32_t uid)
{
	static const char *const files[] = {"cgroup.procs", "cgroup.threads"};
	int r;

	if ((r = write_number(fd, "cgroup.max.depth", 1)) < 0 ||
		(r = write_number(fd, "cgroup.max.descendants", CHILDREN_MAX)) < 0)
		return r;
	for (size_t i = 0; i < array_len(files); i++) {
		if (fchownat(fd, files[i], uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return fchown(fd, uid, uid) < 0 ? -errno : 0;
}

int cgroup_make(const struct cgroup_tree *tree, const char *id, const struct keeper_limits *limits,
	uint32_t uid, int *ret_fd, struct err *err)
{
	auto_fd int fd = -1;
	int r;

	if (!cgroup_tree_is_real(tree)) {
		*ret_fd = -1;
		return 0;
	}
	fd = cgroup_tree_open_dir(tree->unified_fd, id, err);
	if (fd < 0)
		return fd;
	for (int c = 0; c < CGROUP_COUNT; c++) {
		r = limit_v2(tree, (enum cgroup_controller)c, fd, limits);
		if (r < 0)
			return err_from(err, r, "limit cgroup %s", id);
	}
	r = delegate(fd, uid);
	if (r < 0)
		return err_from(err, r, "delegate cgroup %s", id);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int limit_memory_v1(int fd, uint64_t bytes)
{
	int r = write_number(fd, "memory.limit_in_bytes", bytes);

	if (r == 0 && (r = write_number(fd, "memory.memsw.limit_in_bytes", bytes)) == -ENOENT)
		r = 0;
	/* Buffers of sockets are counted only where they are limited, and apart from all else. */
	if (r == 0 &&
		(r = write_number(fd, "memory.kmem.tcp.limit_in_bytes", bytes / 4)) == -ENOENT)
		r = 0;
	return r;
}

static int limit_v1(enum cgroup_controller c, int fd, const struct keeper_limits *limits)
{
	int r = 0;

	switch (c) {
	case CGROUP_MEMORY:
		r = limit_memory_v1(fd, limits->memory_bytes);
		break;
	case CGROUP_CPU:
		r = write_number(fd, "cpu.cfs_quota_us", limits->cpu_millis * CPU_PERIOD_US / 1000);
		break;
	case CGROUP_PIDS:
		r = write_number(fd, "pids.max", limits->pids);
		break;
	case CGROUP_COUNT:
		break;
	}
	return r;
}

/* The sum of memory and swap may never be less than memory: which is written first depends on the direction. */
static int change_memory_v1(int fd, uint64_t bytes)
{
	int r = limit_memory_v1(fd, bytes);

	if (r == -EINVAL && (r = write_number(fd, "memory.memsw.limit_in_bytes", bytes)) == 0)
		r = limit_memory_v1(fd, bytes);
	return r;
}

static uint64_t read_number(int dirfd, const char *file)
{
	char text[64];

	if (dirfd < 0 || fd_read_file(dirfd, file, text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 10); /* "max" reads as 0: no limit */
}

/* The number after `key ` at the start of a line. */
static uint64_t read_keyed(int dirfd, const char *file, const char *key)
{
	char text[2048], *at = text;
	size_t len = strlen(key);

	if (dirfd < 0 || fd_read_file(dirfd, file, text, sizeof(text)) <= 0)
		return 0;
	while (at) {
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return 0;
}

static void read_memory(int fd, bool v1, struct keeper_stats *stats)
{
	uint64_t shared;

	stats->memory_bytes = read_number(fd, v1 ? "memory.usage_in_bytes" : "memory.current");
	/* What is in a tmpfs counts as pages of files, but only its removal gives it back. */
	stats->memory_cache_bytes = read_keyed(fd, "memory.stat", v1 ? "cache" : "file");
	shared = read_keyed(fd, "memory.stat", "shmem");
	stats->memory_cache_bytes -=
		shared < stats->memory_cache_bytes ? shared : stats->memory_cache_bytes;
	stats->memory_peak_bytes =
		read_number(fd, v1 ? "memory.max_usage_in_bytes" : "memory.peak");
	stats->memory_limit_bytes = read_number(fd, v1 ? "memory.limit_in_bytes" : "memory.max");
	stats->oom_kills = read_keyed(fd, v1 ? "memory.oom_control" : "memory.events", "oom_kill");
	if (stats->memory_peak_bytes < stats->memory_bytes)
		stats->memory_peak_bytes = stats->memory_bytes; /* memory.peak is newer than 5.19 */
}

/* The same controllers, as far as their limits are to change. */
static bool is_changed(enum cgroup_controller c, const struct keeper_limits *before,
	const struct keeper_limits *limits)
{
	switch (c) {
	case CGROUP_MEMORY:
		return before->memory_bytes != limits->memory_bytes;
	case CGROUP_CPU:
		return before->cpu_millis != limits->cpu_millis;
	case CGROUP_PIDS:
		return before->pids != limits->pids;
	case CGROUP_COUNT:
		break;
	}
	return false;
}

/* A limit below what is held would have the kernel kill a process for it. */
static int check_memory(int fd, bool v1, const struct keeper_limits *limits)
{
	struct keeper_stats stats = {0};

	/* What it holds is less than what it uses, which is quickly read. */
	if (read_number(fd, v1 ? "memory.usage_in_bytes" : "memory.current") <=
		limits->memory_bytes)
		return 0;
	read_memory(fd, v1, &stats);
	return stats.memory_bytes > stats.memory_cache_bytes &&
			       stats.memory_bytes - stats.memory_cache_bytes > limits->memory_bytes
		       ? -EBUSY
		       : 0;
}

static int change_controller(const struct cgroup_tree *tree, enum cgroup_controller c,
	const char *id, const struct keeper_limits *before, const struct keeper_limits *limits)
{
	bool v1 = tree->v1_fd[c] >= 0;
	auto_fd int fd = openat(
		v1 ? tree->v1_fd[c] : tree->unified_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (c == CGROUP_MEMORY &&
		(!before->memory_bytes || limits->memory_bytes < before->memory_bytes))
		r = check_memory(fd, v1, limits);
	if (r < 0)
		return r;
	if (!v1)
		return limit_v2(tree, c, fd, limits);
	return c == CGROUP_MEMORY ? change_memory_v1(fd, limits->memory_bytes)
				  : limit_v1(c, fd, limits);
}

int cgroup_change(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *before, const struct keeper_limits *limits, struct err *err)
{
	int r = 0;

	/* Memory comes first: it is the one that may be refused. */
	for (int c = 0; cgroup_tree_is_real(tree) && c < CGROUP_COUNT && r == 0; c++) {
		if (cgroup_tree_has(tree, (enum cgroup_controller)c) &&
			is_changed((enum cgroup_controller)c, before, limits))
			r = change_controller(tree, (enum cgroup_controller)c, id, before, limits);
	}
	if (r == -EBUSY)
		return err_explain(err, ERR_CONFLICT, "memory_in_use",
			"end something in it first, or choose a higher limit",
			"the sandbox uses more memory than that");
	return r < 0 ? err_from(err, r, "change the limits of cgroup %s", id) : 0;
}

int cgroup_set_weight(
	const struct cgroup_tree *tree, const char *id, bool is_background, struct err *err)
{
	bool v1 = tree->v1_fd[CGROUP_CPU] >= 0;
	auto_fd int fd = -1;
	int r;

	if (!cgroup_tree_is_real(tree) || !cgroup_tree_has(tree, CGROUP_CPU))
		return 0;
	fd = openat(v1 ? tree->v1_fd[CGROUP_CPU] : tree->unified_fd, id,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open cgroup %s", id);
	r = v1 ? write_number(fd, "cpu.shares", is_background ? 1024 / BACKGROUND_PART : 1024)
	       : write_number(fd, "cpu.weight", is_background ? 100 / BACKGROUND_PART : 100);
	return r < 0 ? err_from(err, r, "give cgroup %s another weight", id) : 0;
}

/* Threads that come and go meanwhile are bound by whoever starts them, or gone. */
static void bind_group(int fd, const cpu_set_t *set)
{
	auto_free char *text = mem_new(BIND_TEXT_MAX);
	ssize_t n = fd_read_file(fd, "cgroup.threads", text, BIND_TEXT_MAX);
	char *rest = text, *line;

	while (n > 0 && (line = strsep(&rest, "\n"))) {
		pid_t thread = (pid_t)atoi(line);

		if (thread > 0)
			(void)!sched_setaffinity(thread, sizeof(*set), set);
	}
}

void cgroup_bind(const struct cgroup_tree *tree, const char *id, const cpu_set_t *set)
{
	auto_fd int fd = -1;
	struct dirent *entry;
	DIR *dir;

	if (!cgroup_tree_is_real(tree))
		return;
	fd = openat(tree->unified_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return;
	(void)take_fd(&fd);
	/* Commands have groups of their own, one level below. */
	while ((entry = readdir(dir))) {
		auto_fd int group = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		group = openat(
			dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (group >= 0)
			bind_group(group, set);
	}
	closedir(dir);
}

static int enter_v1(enum cgroup_controller c, int fd, struct err *err)
{
	int r = fd_write_file(fd, "tasks", "0");

	return r < 0 ? err_from(err, r, "join the %s cgroup",
			       cgroup_tree_controller((enum cgroup_controller)c))
		     : 0;
}

int cgroup_enter_v1(const struct cgroup_tree *tree, const char *id, struct err *err)
{
	for (int c = 0; c < CGROUP_COUNT; c++) {
		auto_fd int fd = -1;
		int r;

		if (tree->v1_fd[c] < 0)
			continue;
		fd = openat(tree->v1_fd[c], id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(err, "open the %s cgroup",
				cgroup_tree_controller((enum cgroup_controller)c));
		r = enter_v1((enum cgroup_controller)c, fd, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_join_v1(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *limits, struct err *err)
{
	for (int c = 0; c < CGROUP_COUNT; c++) {
		auto_fd int fd = -1;
		int r;

		if (tree->v1_fd[c] < 0)
			continue;
		fd = cgroup_tree_open_dir(tree->v1_fd[c], id, err);
		if (fd < 0)
			return fd;
		r = limit_v1(c, fd, limits);
		if (r < 0)
			return err_from(err, r, "set the %s limit",
				cgroup_tree_controller((enum cgroup_controller)c));
		r = enter_v1((enum cgroup_controller)c, fd, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static const char *agent_name(const char *id, char name[static KEEPER_ID_LEN + 16])
{
	snprintf(name, KEEPER_ID_LEN + 16, "%s-agent", id);
	return name;
}

int cgroup_part_agent(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *limits, int *ret_work_fd, struct err *err)
{
	int parent = tree->v1_fd[CGROUP_MEMORY], r;
	auto_fd int work_fd = -1, fd = -1;
	char name[KEEPER_ID_LEN + 16];
	uint64_t bytes = limits->memory_bytes / 4;

	*ret_work_fd = -1;
	if (parent < 0 || !tree->is_host)
		return 0;
	snprintf(name, sizeof(name), "%s/tasks", id);
	work_fd = openat(parent, name, O_WRONLY | O_CLOEXEC);
	if (work_fd < 0)
		return err_sys(err, "open the memory cgroup");
	fd = cgroup_tree_open_dir(parent, agent_name(id, name), err);
	if (fd < 0)
		return fd;
	r = limit_memory_v1(fd, bytes < AGENT_MEMORY_MIN ? AGENT_MEMORY_MIN : bytes);
	if (r == 0)
		r = fd_write_file(fd, "tasks", "0");
	if (r < 0)
		return err_from(err, r, "part the agent's memory from the others'");
	*ret_work_fd = take_fd(&work_fd);
	return 0;
}

int cgroup_detach(int fd, int *ret_fd, struct err *err)
{
	auto_fd int tree = -1;

	if (fd < 0) {
		*ret_fd = -1;
		return 0;
	}
	tree = mounts_open_tree(fd, "", 0);
	if (tree < 0 ||
		mounts_set_attr(
			tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, -1, 0) < 0)
		return err_sys(err, "detach the cgroup");
	*ret_fd = take_fd(&tree);
	return 0;
}

static DIR *open_list(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fd_close(fd);
	return dir;
}

/* The next directory in dir, or NULL. */
static const char *next_group(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			return entry->d_name;
	}
	return NULL;
}

/* The groups of commands, of which an agent that was killed leaves some behind. */
static void remove_children(int parent, const char *id)
{
	DIR *dir = open_list(parent, id);
	const char *name;

	if (!dir)
		return;
	while ((name = next_group(dir)))
		(void)unlinkat(dirfd(dir), name, AT_REMOVEDIR);
	closedir(dir);
}

static int remove_group(int parent, const char *id)
{
	if (unlinkat(parent, id, AT_REMOVEDIR) == 0)
		return 0;
	if (errno == EBUSY || errno == ENOTEMPTY) {
		remove_children(parent, id);
		if (unlinkat(parent, id, AT_REMOVEDIR) == 0)
			return 0;
	}
	return errno == ENOENT ? 0 : -errno;
}

void cgroup_name_owner(const struct cgroup_tree *tree, const char *group, const char *id)
{
	const char *name = tree->is_host ? CGROUP_OWNER_ROOT : CGROUP_OWNER_USER;
	auto_fd int fd = -1;

	if (!cgroup_tree_is_real(tree))
		return;
	fd = openat(tree->unified_fd, group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Kernels before 5.7 know the second on no cgroup: then only the name tells. */
	if (fd < 0 || fsetxattr(fd, name, id, strlen(id), 0) < 0)
		log_debug("group %s does not say that it is of sandbox %s: %s", group, id,
			strerror(errno));
}

bool cgroup_has_processes(const struct cgroup_tree *tree, const char *id)
{
	char file[KEEPER_ID_LEN + 16], events[128];
	ssize_t n;

	if (!cgroup_tree_is_real(tree))
		return false;
	snprintf(file, sizeof(file), "%s/cgroup.events", id);
	n = fd_read_file(tree->unified_fd, file, events, sizeof(events));
	return n < 0 ? n != -ENOENT : strstr(events, "populated 1") != NULL;
}

int cgroup_remove(const struct cgroup_tree *tree, const char *id)
{
	int memory_fd = tree->v1_fd[CGROUP_MEMORY];
	char name[KEEPER_ID_LEN + 16];
	int result = memory_fd < 0 ? 0 : remove_group(memory_fd, agent_name(id, name));

	for (int c = -1; c < CGROUP_COUNT; c++) {
		int fd = c < 0 ? tree->unified_fd : tree->v1_fd[c];
		int r = fd < 0 ? 0 : remove_group(fd, id);

		if (r < 0)
			result = r;
	}
	return result;
}

int cgroup_freeze(const struct cgroup_tree *tree, const char *id, bool freeze, struct err *err)
{
	auto_fd int fd = -1;
	int r;

	if (!cgroup_tree_is_real(tree))
		return err_explain(err, ERR_CONFLICT, "pause_unavailable",
			"stop it instead: it wakes when it is used",
			"a sandbox is paused by freezing its cgroup, and sandlotd, which was not "
			"started by root, was given none");
	fd = openat(tree->unified_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open cgroup %s", id);
	r = fd_write_file(fd, "cgroup.freeze", freeze ? "1" : "0");
	return r < 0 ? err_from(err, r, "freeze cgroup %s", id) : 0;
}

int cgroup_is_frozen(const struct cgroup_tree *tree, const char *id, struct err *err)
{
	auto_fd int fd = openat(tree->unified_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char events[128];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "open cgroup %s", id);
	n = fd_read_file(fd, "cgroup.events", events, sizeof(events));
	if (n < 0)
		return err_from(err, (int)n, "read cgroup.events of %s", id);
	return strstr(events, "frozen 1") != NULL;
}

int cgroup_stats(const struct cgroup_tree *tree, const char *id, struct keeper_stats *ret_stats,
	struct err *err)
{
	auto_fd int unified = openat(tree->unified_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct keeper_stats stats = {0};

	if (unified < 0)
		return err_sys(err, "open cgroup %s", id);
	stats.cpu_us = read_keyed(unified, "cpu.stat", "usage_usec");
	for (int c = 0; c < CGROUP_COUNT; c++) {
		bool v1 = tree->v1_fd[c] >= 0;
		auto_fd int own =
			v1 ? openat(tree->v1_fd[c], id, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		int fd = v1 ? own : unified;

		if (c == CGROUP_MEMORY)
			read_memory(fd, v1, &stats);
		if (c == CGROUP_PIDS) {
			stats.pids = read_number(fd, "pids.current");
			stats.pids_limit = read_number(fd, "pids.max");
		}
	}
	*ret_stats = stats;
	return 0;
}

void cgroup_sweep(const struct cgroup_tree *tree)
{
	DIR *dir = open_list(tree->unified_fd, ".");
	const char *name;

	if (!dir)
		return;
	while ((name = next_group(dir))) {
		char file[NAME_MAX + 16];
		int r;

		snprintf(file, sizeof(file), "%s/cgroup.kill", name);
		r = fd_write_file(tree->unified_fd, file, "1");
		for (int i = 0; i < 200 && (r = cgroup_remove(tree, name)) == -EBUSY; i++)
			usleep(5000);
		if (r < 0)
			log_warning("the cgroup of lost sandbox %s stays: %s", name, strerror(-r));
		else
			log_info("removed the cgroup of lost sandbox %s", name);
	}
	closedir(dir);
}
