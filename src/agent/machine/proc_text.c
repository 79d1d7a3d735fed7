/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine/proc_text.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>

#define TICKS_PER_S 100 /* USER_HZ, which is the same on every Linux */
#define US_PER_TICK (1000000 / TICKS_PER_S)

enum fact {
	ACTIVE_ANON,
	ACTIVE_FILE,
	ANON,
	CACHED,
	DIRTY,
	INACTIVE_ANON,
	INACTIVE_FILE,
	KERNEL_STACK,
	MAPPED,
	PAGE_TABLES,
	RECLAIMABLE,
	SHMEM,
	UNEVICTABLE,
	UNRECLAIMABLE,
	WRITEBACK,
	/* not from memory.stat */
	ACTIVE,
	AVAILABLE,
	FREE,
	INACTIVE,
	SLAB,
	TOTAL,
	ZERO,
	FACT_COUNT,
};

/* Their keys in memory.stat, on v1 and v2. The kernel's own memory is not in that of v1. */
static const char *const keys[][2] = {
	[ACTIVE_ANON] = {"total_active_anon", "active_anon"},
	[ACTIVE_FILE] = {"total_active_file", "active_file"},
	[ANON] = {"total_rss", "anon"},
	[CACHED] = {"total_cache", "file"},
	[DIRTY] = {"total_dirty", "file_dirty"},
	[INACTIVE_ANON] = {"total_inactive_anon", "inactive_anon"},
	[INACTIVE_FILE] = {"total_inactive_file", "inactive_file"},
	[KERNEL_STACK] = {NULL, "kernel_stack"},
	[MAPPED] = {"total_mapped_file", "file_mapped"},
	[PAGE_TABLES] = {NULL, "pagetables"},
	[RECLAIMABLE] = {NULL, "slab_reclaimable"},
	[SHMEM] = {"total_shmem", "shmem"},
	[UNEVICTABLE] = {"total_unevictable", "unevictable"},
	[UNRECLAIMABLE] = {NULL, "slab_unreclaimable"},
	[WRITEBACK] = {"total_writeback", "file_writeback"},
};

/* The lines of /proc/meminfo, in the kernel's order. */
static const struct {
	const char *label;
	enum fact fact;
} lines[] = {
	{"MemTotal:", TOTAL},
	{"MemFree:", FREE},
	{"MemAvailable:", AVAILABLE},
	{"Buffers:", ZERO},
	{"Cached:", CACHED},
	{"SwapCached:", ZERO},
	{"Active:", ACTIVE},
	{"Inactive:", INACTIVE},
	{"Active(anon):", ACTIVE_ANON},
	{"Inactive(anon):", INACTIVE_ANON},
	{"Active(file):", ACTIVE_FILE},
	{"Inactive(file):", INACTIVE_FILE},
	{"Unevictable:", UNEVICTABLE},
	{"Mlocked:", ZERO},
	{"SwapTotal:", ZERO},
	{"SwapFree:", ZERO},
	{"Dirty:", DIRTY},
	{"Writeback:", WRITEBACK},
	{"AnonPages:", ANON},
	{"Mapped:", MAPPED},
	{"Shmem:", SHMEM},
	{"KReclaimable:", RECLAIMABLE},
	{"Slab:", SLAB},
	{"SReclaimable:", RECLAIMABLE},
	{"SUnreclaim:", UNRECLAIMABLE},
	{"KernelStack:", KERNEL_STACK},
	{"PageTables:", PAGE_TABLES},
	{"CommitLimit:", TOTAL},
	{"Committed_AS:", ANON},
};

void proc_text_init(struct proc_text *proc_text)
{
	struct timespec now, up;

	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	/* Read once: a second reading could be a second off, and with it every start time that
	 * ps shows. */
	*proc_text = (struct proc_text){.cgroups = "/sys/fs/cgroup",
		.online = "/sys/devices/system/cpu/online",
		.boot_s = (uint64_t)(now.tv_sec - up.tv_sec - (now.tv_nsec < up.tv_nsec)),
		.started_us = clock_steady_us()};
}

/* Reads a file of one of the groups; false if the group has none of that name. */
static bool read_file(const struct proc_text *proc_text, const char *group, const char *name,
	char *text, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", proc_text->cgroups, group, name);
	return fd_read_file(AT_FDCWD, path, text, size) > 0;
}

static uint64_t read_number(const struct proc_text *proc_text, const char *group, const char *name)
{
	char text[32];

	if (!read_file(proc_text, group, name, text, sizeof(text)))
		return 0;
	return strtoull(text, NULL, 10);
}

/* The number after `key ` at the start of a line; 0 if there is none. */
static uint64_t find(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
	}
	return 0;
}

/* Read only when needed: the kernel looks at every processor for it. */
static uint64_t total_bytes(const struct proc_text *proc_text)
{
	struct sysinfo info;

	if (proc_text->total_bytes || sysinfo(&info) < 0)
		return proc_text->total_bytes;
	return (uint64_t)info.totalram * info.mem_unit;
}

static void read_facts(const struct proc_text *proc_text, const char *group, bool is_v1,
	uint64_t facts[FACT_COUNT])
{
	char text[8192];
	uint64_t total = total_bytes(proc_text);
	uint64_t limit =
		read_number(proc_text, group, is_v1 ? "memory.limit_in_bytes" : "memory.max");
	uint64_t used =
		read_number(proc_text, group, is_v1 ? "memory.usage_in_bytes" : "memory.current");

	if (!read_file(proc_text, group, "memory.stat", text, sizeof(text)))
		text[0] = '\0';
	for (size_t i = 0; i < array_len(keys); i++) {
		const char *key = keys[i][is_v1 ? 0 : 1];

		facts[i] = key ? find(text, key) : 0;
	}
	facts[TOTAL] = limit && limit < total ? limit : total;
	facts[FREE] = used < facts[TOTAL] ? facts[TOTAL] - used : 0;
	facts[ACTIVE] = facts[ACTIVE_ANON] + facts[ACTIVE_FILE];
	facts[INACTIVE] = facts[INACTIVE_ANON] + facts[INACTIVE_FILE];
	facts[SLAB] = facts[RECLAIMABLE] + facts[UNRECLAIMABLE];
	facts[AVAILABLE] =
		facts[FREE] + facts[ACTIVE_FILE] + facts[INACTIVE_FILE] + facts[RECLAIMABLE];
}

/* Where no limit applies, memory is what the host has, and has free. */
static void read_host(const struct proc_text *proc_text, uint64_t facts[FACT_COUNT])
{
	struct sysinfo info;

	facts[TOTAL] = facts[FREE] = total_bytes(proc_text);
	if (sysinfo(&info) == 0)
		facts[FREE] = (uint64_t)info.freeram * info.mem_unit;
	facts[AVAILABLE] = facts[FREE];
}

/* The groups are one below the other on v2, and side by side otherwise (keeper/rootfs/virtual_sys.h). */
void proc_text_put_meminfo(const struct proc_text *proc_text, struct buf *out)
{
	uint64_t facts[FACT_COUNT] = {0};
	char text[32];
	int width;

	if (read_file(proc_text, "memory", "memory.limit_in_bytes", text, sizeof(text)))
		read_facts(proc_text, "memory", true, facts);
	else if (read_file(proc_text, "unified", "memory.max", text, sizeof(text)))
		read_facts(proc_text, "unified", false, facts);
	else if (read_file(proc_text, ".", "memory.max", text, sizeof(text)))
		read_facts(proc_text, ".", false, facts);
	else
		read_host(proc_text, facts);
	width = (int)format_append(
		text, sizeof(text), 0, "%llu", (unsigned long long)facts[TOTAL] / 1024);
	for (size_t i = 0; i < array_len(lines); i++) {
		uint64_t bytes = facts[lines[i].fact];

		/* The counters are not read at one instant. */
		if (bytes > facts[TOTAL])
			bytes = facts[TOTAL];
		buf_printf(out, "%-16s%*llu kB\n", lines[i].label, width > 8 ? width : 8,
			(unsigned long long)bytes / 1024);
	}
}

/* The list is always "0" or "0-N": the keeper wrote it. */
static unsigned count_cpus(const struct proc_text *proc_text)
{
	char text[32];
	const char *last;

	if (fd_read_file(AT_FDCWD, proc_text->online, text, sizeof(text)) <= 0)
		return 1;
	last = strchr(text, '-');
	return (unsigned)strtoul(last ? last + 1 : text, NULL, 10) + 1;
}

/* How many processes there were: the last number given out in this pid namespace. */
static uint64_t count_processes(void)
{
	char text[128];
	const char *last = NULL;

	if (fd_read_file(AT_FDCWD, "/proc/loadavg", text, sizeof(text)) > 0)
		last = strrchr(text, ' ');
	return last ? strtoull(last, NULL, 10) : 0;
}

struct times {
	uint64_t user, system, idle; /* in us */
};

/* Adds the usage of the agent, or of all children that it has reaped. */
static void add_usage(struct times *times, int who)
{
	struct rusage usage;

	if (getrusage(who, &usage) < 0)
		return;
	times->user += (uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
	times->system +=
		(uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec;
}

/* The time since the sandbox was started that was not used counts as idle. */
static struct times read_times(const struct proc_text *proc_text, unsigned cpus)
{
	uint64_t all = (clock_steady_us() - proc_text->started_us) * cpus;
	struct times times = {0};
	char text[2048];

	if (read_file(proc_text, "unified", "cpu.stat", text, sizeof(text)) ||
		read_file(proc_text, ".", "cpu.stat", text, sizeof(text))) {
		times.user = find(text, "user_usec");
		times.system = find(text, "system_usec");
	} else {
		add_usage(&times, RUSAGE_SELF);
		add_usage(&times, RUSAGE_CHILDREN);
	}
	if (all > times.user + times.system)
		times.idle = all - times.user - times.system;
	return times;
}

/* user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice */
static void put_times(struct buf *out, const char *label, struct times times, unsigned share)
{
	const uint64_t unit = (uint64_t)US_PER_TICK * share;

	buf_printf(out, "%s %12llu 0 %12llu %12llu 0 0 0 0 0 0\n", label,
		(unsigned long long)(times.user / unit), (unsigned long long)(times.system / unit),
		(unsigned long long)(times.idle / unit));
}

/* No cgroup knows which processor it ran on: each processor gets the same share. */
void proc_text_put_stat(const struct proc_text *proc_text, struct buf *out)
{
	unsigned cpus = count_cpus(proc_text);
	struct times times = read_times(proc_text, cpus);

	put_times(out, "cpu ", times, 1);
	for (unsigned i = 0; i < cpus; i++) {
		char label[16];

		snprintf(label, sizeof(label), "cpu%u", i);
		put_times(out, label, times, cpus);
	}
	buf_printf(out, "intr 0\nctxt 0\nbtime %llu\nprocesses %10llu\nprocs_running 1\n",
		(unsigned long long)proc_text->boot_s, (unsigned long long)count_processes());
	buf_append_str(out, "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n");
}
