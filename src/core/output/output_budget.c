/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output/output_budget.h"

#include "base/clock.h"
#include "base/fd.h"
#include "core/output/output_log_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_MS 100 /* how long it is believed how full the host's disk is */

/* What is kept of one process. */
struct kept {
	uint32_t process;
	struct output_log *log; /* open for appending: it knows what it takes; NULL: */
	uint64_t bytes;
};

struct output_budget {
	atomic_int refs;
	uint64_t disk_reserve;
	atomic_ullong used_bytes;

	pthread_mutex_t lock; /* what follows; before that of a log */
	struct kept *kept;    /* in the order of their numbers */
	size_t count, room;
	uint64_t max_bytes;
	uint64_t looked_ms; /* when the host's disk was last looked at; 0: never */
	bool is_low;	    /* it had less than the reserve */
	uint64_t ceiling;   /* while it is: what all may take together */
};

/* --- the list; with the lock held --- */

static struct kept *find_kept(struct output_budget *budget, uint32_t process)
{
	size_t low = 0, high = budget->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (budget->kept[middle].process < process)
			low = middle + 1;
		else
			high = middle;
	}
	return budget->kept + low;
}

static bool is_process(
	const struct output_budget *budget, const struct kept *kept, uint32_t process)
{
	return kept < budget->kept + budget->count && kept->process == process;
}

static struct kept *add_kept(struct output_budget *budget, uint32_t process)
{
	struct kept *kept = find_kept(budget, process);
	size_t at = (size_t)(kept - budget->kept);

	if (is_process(budget, kept, process))
		return kept;
	if (budget->count == budget->room) {
		budget->room = budget->room ? budget->room * 2 : 16;
		budget->kept = realloc(budget->kept, budget->room * sizeof(*budget->kept));
		if (!budget->kept)
			abort();
	}
	kept = budget->kept + at;
	memmove(kept + 1, kept, (budget->count - at) * sizeof(*kept));
	budget->count++;
	*kept = (struct kept){.process = process};
	return kept;
}

static void drop_kept(struct output_budget *budget, struct kept *kept)
{
	size_t behind = (size_t)(budget->kept + budget->count - (kept + 1));

	memmove(kept, kept + 1, behind * sizeof(*kept));
	budget->count--;
}

/* --- opening --- */

static void count_file(struct output_budget *budget, int dir_fd, const char *name)
{
	struct kept *kept;
	struct stat st;
	uint64_t bytes;
	char *end;
	unsigned long process = strtoul(name, &end, 10);

	if (*end != '-' || process > UINT32_MAX ||
		fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return;
	bytes = output_segment_blocks((uint64_t)st.st_size);
	kept = add_kept(budget, (uint32_t)process);
	kept->bytes += bytes;
	budget->used_bytes += bytes;
}

static int count_files(struct output_budget *budget, int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r;

	if (!dir) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	while (errno = 0, (entry = readdir(dir)))
		count_file(budget, dir_fd, entry->d_name);
	r = -errno;
	closedir(dir);
	return r;
}

int output_budget_open(int dir_fd, uint64_t max_bytes, uint64_t disk_reserve,
	struct output_budget **ret_budget, struct err *err)
{
	struct output_budget *budget = mem_new(sizeof(*budget));
	int r;

	budget->refs = 1;
	budget->disk_reserve = disk_reserve;
	budget->max_bytes = max_bytes;
	pthread_mutex_init(&budget->lock, NULL);
	r = count_files(budget, dir_fd);
	if (r < 0) {
		output_budget_unref(budget);
		return err_from(err, r, "count the kept output of a sandbox");
	}
	*ret_budget = budget;
	return 0;
}

struct output_budget *output_budget_ref(struct output_budget *budget)
{
	atomic_fetch_add(&budget->refs, 1);
	return budget;
}

void output_budget_unref(struct output_budget *budget)
{
	if (!budget || atomic_fetch_sub(&budget->refs, 1) > 1)
		return;
	free(budget->kept);
	pthread_mutex_destroy(&budget->lock);
	free(budget);
}

void output_budget_set_max(struct output_budget *budget, uint64_t max_bytes)
{
	pthread_mutex_lock(&budget->lock);
	budget->max_bytes = max_bytes;
	pthread_mutex_unlock(&budget->lock);
}

uint64_t output_budget_used(struct output_budget *budget)
{
	return atomic_load(&budget->used_bytes);
}

/* --- the logs --- */

void output_budget_join(struct output_budget *budget, struct output_log *log)
{
	struct kept *kept;

	pthread_mutex_lock(&budget->lock);
	kept = add_kept(budget, output_log_process(log));
	/* What opening mended is not in the number from before. */
	atomic_fetch_add(&budget->used_bytes, output_log_used(log) - kept->bytes);
	kept->log = log;
	kept->bytes = 0;
	pthread_mutex_unlock(&budget->lock);
}

void output_budget_leave(struct output_budget *budget, struct output_log *log)
{
	struct kept *kept;

	pthread_mutex_lock(&budget->lock);
	kept = find_kept(budget, output_log_process(log));
	if (is_process(budget, kept, output_log_process(log)) && kept->log == log) {
		kept->bytes = output_log_used(log);
		kept->log = NULL;
		if (kept->bytes == 0)
			drop_kept(budget, kept);
	}
	pthread_mutex_unlock(&budget->lock);
}

void output_budget_charge(struct output_budget *budget, int64_t bytes)
{
	atomic_fetch_add(&budget->used_bytes, (uint64_t)bytes);
}

void output_budget_remove(struct output_budget *budget, int dir_fd, uint32_t process)
{
	struct kept *kept;

	pthread_mutex_lock(&budget->lock);
	kept = find_kept(budget, process);
	if (is_process(budget, kept, process)) {
		uint64_t bytes = kept->log ? output_log_used(kept->log) : kept->bytes;

		if (kept->log)
			output_log_end_for_good(kept->log);
		atomic_fetch_sub(&budget->used_bytes, bytes);
		drop_kept(budget, kept);
	}
	output_segment_remove_all(dir_fd, process);
	pthread_mutex_unlock(&budget->lock);
}

/* --- making room; with the lock held, on the appender's thread --- */

/* Removes the output of one that nobody appends to; true if that made room. */
static bool forget_oldest(struct output_budget *budget, int dir_fd, uint64_t more_than)
{
	for (size_t i = 0; i < budget->count; i++) {
		struct kept *kept = budget->kept + i;
		uint64_t left = 0;

		if (kept->log || kept->bytes <= more_than)
			continue;
		if (more_than > 0)
			left = output_log_clear(dir_fd, kept->process);
		else
			output_segment_remove_all(dir_fd, kept->process);
		atomic_fetch_sub(&budget->used_bytes, kept->bytes - left);
		kept->bytes = left;
		if (left == 0)
			drop_kept(budget, kept);
		return true;
	}
	return false;
}

/* Has the log that takes the most drop its oldest file; false if none has one to drop. */
static bool shorten_largest(struct output_budget *budget, const struct output_log *asking)
{
	struct output_log *largest = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < budget->count; i++) {
		struct output_log *log = budget->kept[i].log;

		if (log && output_log_used(log) > bytes &&
			output_log_can_shorten(log, log != asking)) {
			largest = log;
			bytes = output_log_used(log);
		}
	}
	if (largest)
		output_log_shorten(largest);
	return largest;
}

static bool make_room(struct output_budget *budget, const struct output_log *asking)
{
	int dir_fd = output_log_dir(asking);

	return forget_oldest(budget, dir_fd, OUTPUT_SEGMENT_BLOCK) ||
	       shorten_largest(budget, asking) || forget_oldest(budget, dir_fd, 0);
}

/* What cannot be looked at is not full. */
static bool is_low(const struct output_budget *budget, int dir_fd)
{
	return fd_free_bytes(dir_fd) < budget->disk_reserve;
}

static uint64_t find_limit(struct output_budget *budget, int dir_fd)
{
	uint64_t now = clock_steady_ms(), used = output_budget_used(budget);

	if (budget->looked_ms == 0 || now - budget->looked_ms >= LOOK_MS) {
		bool was_low = budget->is_low;

		budget->looked_ms = now;
		budget->is_low = is_low(budget, dir_fd);
		if (!was_low)
			budget->ceiling = used > OUTPUT_BUDGET_FLOOR ? used : OUTPUT_BUDGET_FLOOR;
	}
	return budget->is_low && budget->ceiling < budget->max_bytes ? budget->ceiling
								     : budget->max_bytes;
}

bool output_budget_reserve(struct output_budget *budget, struct output_log *log, uint64_t bytes)
{
	uint64_t limit;
	bool has_room;

	if (bytes == 0)
		return true;
	pthread_mutex_lock(&budget->lock);
	limit = find_limit(budget, output_log_dir(log));
	do
		has_room = output_budget_used(budget) + bytes <= limit;
	while (!has_room && make_room(budget, log));
	pthread_mutex_unlock(&budget->lock);
	return has_room;
}
