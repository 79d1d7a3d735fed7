/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backups: copies of the whole database, each a file of its own (db_backup_to). The name
 * begins with the generation, so that names sort by age whatever the clock says.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "store/store_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define DRAFT  "new" /* what is being written; of a backup that was cut short */
#define DIGITS 12
#define PAGE   64

static void make_name(uint64_t generation, char name[STORE_BACKUP_NAME_MAX])
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	char when[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(name, STORE_BACKUP_NAME_MAX, "%0*llu-%s.db", DIGITS,
		(unsigned long long)generation, when);
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return strspn(name, "0123456789") >= DIGITS && len > DIGITS &&
	       len < STORE_BACKUP_NAME_MAX && strcmp(name + len - 3, ".db") == 0;
}

/* --- what there is --- */

/* Keeps the max smallest. */
static unsigned insert_name(
	char names[][STORE_BACKUP_NAME_MAX], unsigned count, unsigned max, const char *name)
{
	unsigned at = 0;

	while (at < count && strcmp(names[at], name) < 0)
		at++;
	if (at == max)
		return count;
	if (count < max)
		count++;
	memmove(names[at + 1], names[at], (count - 1 - at) * sizeof(names[0]));
	snprintf(names[at], STORE_BACKUP_NAME_MAX, "%s", name);
	return count;
}

int store_backup_list(const char *dir, const char *after, char names[][STORE_BACKUP_NAME_MAX],
	unsigned max, struct err *err)
{
	DIR *list = opendir(dir);
	const struct dirent *entry;
	unsigned count = 0;

	if (!list)
		return errno == ENOENT ? 0 : err_sys(err, "list the backups in %s", dir);
	while ((entry = readdir(list))) {
		if (is_name(entry->d_name) && strcmp(entry->d_name, after) > 0)
			count = insert_name(names, count, max, entry->d_name);
	}
	closedir(list);
	return (int)count;
}

bool store_backup_newest(const char *dir, char name[STORE_BACKUP_NAME_MAX])
{
	char names[PAGE][STORE_BACKUP_NAME_MAX];
	struct err ignored;
	int count;

	name[0] = '\0';
	do {
		count = store_backup_list(dir, name, names, PAGE, &ignored);
		if (count > 0)
			memcpy(name, names[count - 1], STORE_BACKUP_NAME_MAX);
	} while (count == PAGE);
	return name[0];
}

uint64_t store_backup_generation(const char *dir)
{
	char name[STORE_BACKUP_NAME_MAX];

	return dir && store_backup_newest(dir, name) ? strtoull(name, NULL, 10) : 0;
}

static void prune(int dirfd, const struct store_backup_rule *rule)
{
	char names[PAGE][STORE_BACKUP_NAME_MAX], after[STORE_BACKUP_NAME_MAX] = "";
	unsigned total = 0, surplus;
	struct err err;
	int count;

	do {
		count = store_backup_list(rule->dir, after, names, PAGE, &err);
		if (count > 0)
			memcpy(after, names[count - 1], sizeof(after));
		total += count > 0 ? (unsigned)count : 0;
	} while (count == PAGE);
	surplus = total > rule->keep ? total - rule->keep : 0;
	while (surplus > 0 && (count = store_backup_list(rule->dir, "", names, PAGE, &err)) > 0) {
		for (int i = 0; i < count && surplus > 0; i++, surplus--) {
			if (unlinkat(dirfd, names[i], 0) < 0) {
				log_error("the old backup %s stays: %s", names[i], strerror(errno));
				return;
			}
		}
	}
}

/* --- a new one --- */

static int check_room(
	const struct db *db, int dirfd, const struct store_backup_rule *rule, struct err *err)
{
	char size[FORMAT_SIZE_LEN];
	struct statvfs disk;
	uint64_t bytes;
	int r = db_size(db, &bytes, err);

	if (r < 0)
		return r;
	if (fstatvfs(dirfd, &disk) < 0)
		return err_sys(err, "see whether there is room for a backup");
	if ((uint64_t)disk.f_bavail * disk.f_frsize >= bytes + rule->reserve_bytes)
		return 0;
	format_size(bytes, size);
	return err_explain(err, ERR_NO_SPACE, NULL, "free space below the data directory",
		"too little room for a backup of %s beside the reserve", size);
}

/* The name comes when the content is on the disk. */
static int put_in_place(int dirfd, const char *name, struct err *err)
{
	auto_fd int fd = openat(dirfd, DRAFT, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fchmod(fd, 0600) < 0 || fsync(fd) < 0 ||
		renameat(dirfd, DRAFT, dirfd, name) < 0 || fsync(dirfd) < 0)
		return err_sys(err, "put the backup %s in its place", name);
	return 0;
}

int store_backup_from(
	struct db *db, const struct store_backup_rule *rule, uint64_t generation, struct err *err)
{
	auto_free char *draft = mem_printf("%s/" DRAFT, rule->dir);
	auto_fd int dirfd = -1;
	char name[STORE_BACKUP_NAME_MAX];
	int r;

	if (mkdir(rule->dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make the directory of backups");
	dirfd = open(rule->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd < 0)
		return err_sys(err, "open the directory of backups");
	(void)unlinkat(dirfd, DRAFT, 0);
	make_name(generation, name);
	r = check_room(db, dirfd, rule, err);
	if (r == 0)
		r = db_backup_to(db, draft, err);
	if (r == 0)
		r = put_in_place(dirfd, name, err);
	if (r < 0) {
		(void)unlinkat(dirfd, DRAFT, 0);
		return r;
	}
	log_info("wrote the backup %s/%s", rule->dir, name);
	prune(dirfd, rule);
	return 0;
}

int store_backup(struct store *store, const struct store_backup_rule *rule, struct err *err)
{
	auto_(store_reader_close) struct store_reader reader = {0};
	uint64_t generation = store_generation(store);
	int r = store_reader_open(store, &reader, err);

	return r < 0 ? r : store_backup_from(reader.db, rule, generation, err);
}
