/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore: puts a backup in the place of the daemon's database, while no daemon runs. What was there before is
 * set aside, never removed. The file `accept`, written last, tells the next daemon that an operator wants the
 * database as it is, though it is older than the workspaces; without it the daemon refuses to start.
 *
 * The directory belongs to the daemon's user and root may run this, so every file is opened by descriptor
 * and no link is followed.
 */
#include "base/clock.h"
#include "base/data_dir.h"
#include "base/fd.h"
#include "base/format.h"
#include "cli/command.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DATABASE  "sandlot.db"
#define DRAFT	  "sandlot.db.restored"
#define MAGIC	  "SQLite format 3" /* with its NUL, what every database begins with */
#define DIGITS	  12
#define ASIDE_MAX 48

struct restore_values {
	const char *data_dir;
	bool list, accept, empty;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "accept", NULL,
		"let the daemon start with the database as it is, though it is older or empty",
		offsetof(struct restore_values, accept)},
	{OPTION_TEXT, 0, "data-dir", "DIR", "the daemon's data directory",
		offsetof(struct restore_values, data_dir)},
	{OPTION_FLAG, 0, "empty", NULL, "set the database aside and start with an empty one",
		offsetof(struct restore_values, empty)},
	{OPTION_FLAG, 0, "list", NULL, "list the backups, the oldest first",
		offsetof(struct restore_values, list)},
	{OPTION_END},
};

/* The daemon's directories, opened. */
struct place {
	char *data_dir;
	int state_fd, run_fd, backups_fd, lock_fd;
	struct stat state;
};

static void close_place(struct place *place)
{
	free(place->data_dir);
	fd_close(place->state_fd);
	fd_close(place->run_fd);
	fd_close(place->backups_fd);
	fd_close(place->lock_fd);
}

static char *find_data_dir(const struct restore_values *values)
{
	const char *configured = getenv("SANDLOT_DATA_DIR");
	char *own;

	if (values->data_dir)
		return mem_strdup(values->data_dir);
	if (configured && configured[0])
		return mem_strdup(configured);
	own = geteuid() == 0 ? NULL : data_dir_of_user();
	return own ? own : mem_strdup(DATA_DIR_OF_ROOT);
}

static int open_dir(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_place(const struct restore_values *values, struct place *place, struct err *err)
{
	auto_fd int data_fd = -1;

	place->data_dir = find_data_dir(values);
	data_fd = open(place->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (data_fd >= 0)
		place->state_fd = open_dir(data_fd, "state");
	if (data_fd < 0 || place->state_fd < 0 || fstat(place->state_fd, &place->state) < 0) {
		int r = err_sys(err, "open the state in the data directory %s", place->data_dir);

		snprintf(err->remedy, sizeof(err->remedy), "%s",
			r == -EACCES ? "run it as root, or as the user who runs sandlotd"
				     : "name the right one with --data-dir");
		return r;
	}
	place->run_fd = open_dir(data_fd, "run");
	place->backups_fd = open_dir(place->state_fd, "backups");
	return 0;
}

/* Held until we end: no daemon can start meanwhile. */
static int lock_out_daemon(struct place *place, struct err *err)
{
	place->lock_fd = openat(
		place->run_fd, "daemon.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (place->run_fd < 0 || place->lock_fd < 0)
		return err_sys(err, "open %s/run/daemon.lock", place->data_dir);
	if (flock(place->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_explain(err, ERR_CONFLICT, "daemon_runs",
			"end it first, with SIGTERM or `systemctl stop sandlot`; sandboxes go on",
			"a daemon runs on the data directory %s", place->data_dir);
	return 0;
}

/* --- the backups there are --- */

static bool is_backup(const char *name)
{
	size_t len = strlen(name);

	return len > DIGITS + 3 && strspn(name, "0123456789") >= DIGITS &&
	       strcmp(name + len - 3, ".db") == 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A sorted list, ended by NULL; the caller frees it. */
static char **list_names(const struct place *place, size_t *ret_count)
{
	int own = place->backups_fd < 0 ? -1 : open_dir(place->backups_fd, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	char **names = mem_new(sizeof(char *));
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		if (!is_backup(entry->d_name))
			continue;
		names = realloc(names, (count + 2) * sizeof(char *));
		if (!names)
			abort();
		names[count++] = mem_strdup(entry->d_name);
		names[count] = NULL;
	}
	if (dir)
		closedir(dir);
	qsort(names, count, sizeof(char *), compare_names);
	*ret_count = count;
	return names;
}

static void free_names(char ***names)
{
	for (char **name = *names; name && *name; name++)
		free(*name);
	free(*names);
}

static void add_row(struct table *table, const char *name, const struct stat *st)
{
	char size[HUMAN_LEN], age[HUMAN_LEN];

	format_size((uint64_t)st->st_size, size);
	human_age(clock_wall_ms() - (int64_t)st->st_mtim.tv_sec * 1000, age);
	table_add(table, "%s", name);
	table_add(table, "%s", age);
	table_add(table, "%s", size);
}

static json_t *row_to_json(const char *name, const struct stat *st)
{
	char when[CLOCK_TEXT_LEN];

	clock_format((int64_t)st->st_mtim.tv_sec * 1000, when);
	return json_pack("{s:s, s:s, s:I}", "name", name, "written_at", when, "bytes",
		(json_int_t)st->st_size);
}

static void list_backups(struct cli *cli, const struct place *place)
{
	static const char *const heading[] = {"BACKUP", "AGE", "SIZE"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	json_auto_t *document = json_pack("{s:[]}", "backups");
	size_t count;
	auto_(free_names) char **names = list_names(place, &count);

	table_add_row(&table, heading);
	for (size_t i = 0; i < count; i++) {
		struct stat st;

		if (fstatat(place->backups_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		add_row(&table, names[i], &st);
		json_array_append_new(
			json_object_get(document, "backups"), row_to_json(names[i], &st));
	}
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		table_print(&table, stdout);
}

/* --- putting one in place --- */

/* A name from the list, or the path of a copy that was kept elsewhere; NULL for the newest. */
static int open_backup(const struct place *place, const char *given, int *ret_fd,
	char name[NAME_MAX + 1], struct err *err)
{
	size_t count;
	auto_(free_names) char **names = list_names(place, &count);
	const char *chosen = given ? given : count > 0 ? names[count - 1] : NULL;
	char magic[sizeof(MAGIC)];
	auto_fd int fd = -1;

	if (!chosen)
		return err_explain(err, ERR_NOT_FOUND, "no_backup",
			"start with an empty one: sandlot restore --empty; files are kept",
			"there is no backup below %s/state/backups", place->data_dir);
	fd = strchr(chosen, '/')
		     ? open(chosen, O_RDONLY | O_CLOEXEC)
		     : openat(place->backups_fd, chosen, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_explain(err, ERR_NOT_FOUND, "no_backup",
			"list them with sandlot restore --list", "open the backup %s: %s", chosen,
			strerror(errno));
	if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
		memcmp(magic, MAGIC, sizeof(magic)) != 0)
		return err_explain(err, ERR_INVALID, "no_backup",
			"list them with sandlot restore --list", "%s is no database", chosen);
	snprintf(name, NAME_MAX + 1, "%s", chosen);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A file in state/ that belongs to whom the directory belongs to. */
static int make_file(const struct place *place, const char *name, int *ret_fd, struct err *err)
{
	auto_fd int fd = -1;

	(void)unlinkat(place->state_fd, name, 0);
	fd = openat(
		place->state_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchown(fd, place->state.st_uid, place->state.st_gid) < 0)
		return err_sys(err, "make %s/state/%s", place->data_dir, name);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int copy_draft(const struct place *place, int from_fd, struct err *err)
{
	auto_free char *chunk = mem_new(1 << 20);
	auto_fd int fd = -1;
	ssize_t n;
	int r = make_file(place, DRAFT, &fd, err);

	if (r < 0)
		return r;
	while ((n = read(from_fd, chunk, 1 << 20)) > 0) {
		r = fd_write_full(fd, chunk, (size_t)n);
		if (r < 0)
			break;
	}
	if (n < 0)
		r = -errno;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(place->state_fd, DRAFT, 0);
		return err_from(err, r, "copy the backup to %s/state", place->data_dir);
	}
	return 0;
}

/* A directory of its own for what is set aside, named after the time. */
static int make_aside(const struct place *place, char name[ASIDE_MAX])
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	for (int i = 1; i < 100; i++) { /* several in a second */
		snprintf(name, ASIDE_MAX, "replaced-%s-%d", when, i);
		if (mkdirat(place->state_fd, name, 0700) == 0)
			return open_dir(place->state_fd, name);
		if (errno != EEXIST)
			break;
	}
	return -1;
}

/* The database with its log. */
static int set_aside(const struct place *place, char dir_name[ASIDE_MAX], struct err *err)
{
	static const char *const names[] = {DATABASE, DATABASE "-wal", DATABASE "-shm"};
	auto_fd int dir_fd = make_aside(place, dir_name);

	if (dir_fd < 0 || fchown(dir_fd, place->state.st_uid, place->state.st_gid) < 0)
		return err_sys(err, "make %s/state/%s", place->data_dir, dir_name);
	for (size_t i = 0; i < array_len(names); i++) {
		if (renameat(place->state_fd, names[i], dir_fd, names[i]) < 0 && errno != ENOENT)
			return err_sys(err, "set %s/state/%s aside", place->data_dir, names[i]);
	}
	return fsync(dir_fd) < 0 ? err_sys(err, "sync %s", dir_name) : 0;
}

static int write_accept(const struct place *place, struct err *err)
{
	auto_fd int fd = -1;
	int r = make_file(place, "accept", &fd, err);

	if (r < 0)
		return r;
	if (fsync(fd) < 0 || fsync(place->state_fd) < 0)
		return err_sys(err, "sync %s/state", place->data_dir);
	return 0;
}

/* The order matters: who is killed in between finds a daemon that refuses, not one that starts empty. */
static int put_in_place(const struct place *place, const char *given, char name[NAME_MAX + 1],
	char aside[ASIDE_MAX], struct err *err)
{
	auto_fd int backup_fd = -1;
	int r = open_backup(place, given, &backup_fd, name, err);

	if (r == 0)
		r = copy_draft(place, backup_fd, err);
	if (r == 0)
		r = set_aside(place, aside, err);
	if (r < 0)
		return r;
	if (renameat(place->state_fd, DRAFT, place->state_fd, DATABASE) < 0)
		return err_sys(err, "put %s/state/" DATABASE " in its place", place->data_dir);
	return write_accept(place, err);
}

static void report(struct cli *cli, const char *name, const char *aside)
{
	if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:s?, s:s?}", "restored", name[0] ? name : NULL,
			"replaced", aside[0] ? aside : NULL);

		cli_print_json(document);
		return;
	}
	if (name[0])
		printf("restored %s\n", name);
	if (aside[0])
		cli_note("what was there before is in state/%s", aside);
	cli_note("sandlotd can be started; workspaces that its database does not know are kept: "
		 "sandlot ls --orphans");
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct restore_values *v = values;
	auto_(close_place) struct place place = {
		.state_fd = -1, .run_fd = -1, .backups_fd = -1, .lock_fd = -1};
	char name[NAME_MAX + 1] = "", aside[ASIDE_MAX] = "";
	int r;

	if (v->list + v->accept + v->empty + (argc > 0) > 1)
		return err_set(err, ERR_INVALID,
			"restore takes one of --list, --accept, --empty and a backup");
	r = open_place(v, &place, err);
	if (r == 0 && v->list) {
		list_backups(cli, &place);
		return 0;
	}
	if (r == 0)
		r = lock_out_daemon(&place, err);
	if (r < 0)
		return r;
	if (v->empty)
		r = set_aside(&place, aside, err);
	else if (!v->accept)
		r = put_in_place(&place, argc > 0 ? argv[0] : NULL, name, aside, err);
	if (r == 0 && (v->empty || v->accept))
		r = write_accept(&place, err);
	if (r < 0)
		return r;
	report(cli, name, aside);
	return 0;
}

const struct command cmd_restore = {
	.name = "restore",
	.operands = "[BACKUP]",
	.summary = "bring back the daemon's database from a backup",
	.details =
		"Works on the data directory of this machine while no daemon runs. Without BACKUP\n"
		"it is the newest; BACKUP is a name of --list, or the path of a copy. What was\n"
		"there before is set aside. Workspaces that the database does not know are kept "
		"as\n"
		"orphans: see sandlot ls --orphans.\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct restore_values),
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
