/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stats/process_count.h"

#include "base/fd.h"
#include "keeper/mount/mounts.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define TICKS_PER_S   100 /* USER_HZ, which is the same on every Linux */
#define US_PER_TICK   (1000000 / TICKS_PER_S)
#define PAGE_BYTES    4096
#define FIRST_FIELD   3 /* what follows the name, as proc(5) counts */
#define FIELD_UTIME   14
#define FIELD_CSTIME  17
#define FIELD_THREADS 20
#define FIELD_RSS     24
#define PROCESSES_MAX 100000

bool process_count_add(const char *line, struct keeper_stats *stats)
{
	/* The name may hold any character, so its end is searched from behind. */
	const char *at = strrchr(line, ')');
	unsigned long long fields[FIELD_RSS + 1] = {0};

	if (!at || at[1] != ' ' || !at[2])
		return false;
	at += 3; /* to the space after the state, which is a letter */
	for (int i = FIRST_FIELD + 1; i <= FIELD_RSS; i++) {
		char *end;

		fields[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	for (int i = FIELD_UTIME; i <= FIELD_CSTIME; i++)
		stats->cpu_us += fields[i] * US_PER_TICK;
	stats->pids += fields[FIELD_THREADS];
	stats->memory_bytes += fields[FIELD_RSS] * PAGE_BYTES;
	return true;
}

/* Opens the sandbox's own procfs, which lists only its processes. */
static DIR *open_proc(pid_t init)
{
	auto_fd int root = -1, proc = -1;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/root", init);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0)
		proc = mounts_open_beneath(root, "proc", O_RDONLY | O_DIRECTORY);
	dir = proc < 0 ? NULL : fdopendir(proc);
	if (dir)
		take_fd(&proc);
	return dir;
}

int process_count_take(pid_t init, struct keeper_stats *ret_stats, struct err *err)
{
	struct keeper_stats stats = {0};
	DIR *dir = open_proc(init);
	struct dirent *entry;

	if (!dir)
		return err_sys(err, "list the processes of a sandbox");
	for (int count = 0; count < PROCESSES_MAX && (entry = readdir(dir)); count++) {
		char path[300], line[1024];

		snprintf(path, sizeof(path), "%s/stat", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) &&
			fd_read_file(dirfd(dir), path, line, sizeof(line)) > 0)
			(void)process_count_add(line, &stats);
	}
	closedir(dir);
	stats.memory_peak_bytes = stats.memory_bytes;
	*ret_stats = stats;
	return 0;
}
