/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's directories. It gives directories to the uid ranges of sandboxes, which only root can:
 * without root nothing here is proven, and the test says so by failing.
 */
#include "keeper/disk/disk_list.h"
#include "keeper/disk/storage.h"
#include "keeper/disk/trash.h"

#include "base/fd.h"
#include "base/log.h"
#include "fd_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE_UID 1000000u

static const char id[] = "0123456789abcdefghijklmnop";

struct fixture {
	char dir[64];
	struct storage storage;
	int fds_before;
};

static int setup(void **state)
{
	struct fixture *fixture = mem_new(sizeof(*fixture));
	struct err err = {0};

	log_open("test", LOG_ERROR);
	umask(022);
	fixture->fds_before = count_fds();
	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/sandlot-storage-XXXXXX");
	if (!mkdtemp(fixture->dir) || storage_open(&fixture->storage, fixture->dir, &err) < 0) {
		print_error("%s\n", err.message);
		return -1;
	}
	*state = fixture;
	return 0;
}

static void remove_entry(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) < 0) {
		int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		DIR *dir = fdopendir(fd);
		struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				remove_entry(fd, entry->d_name);
		}
		closedir(dir);
		unlinkat(dirfd, name, AT_REMOVEDIR);
	}
}

/* Closes those that are open; all of it is descriptors. */
static void close_storage(const struct storage *storage)
{
	const int *fds = (const int *)storage;

	for (size_t i = 0; i < sizeof(*storage) / sizeof(int); i++)
		fd_close(fds[i]);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	close_storage(&fixture->storage);
	remove_entry(AT_FDCWD, fixture->dir);
	assert_int_equal(count_fds(), fixture->fds_before);
	free(fixture);
	return 0;
}

/* --- looking --- */

static struct stat look(struct fixture *fixture, const char *name)
{
	char *path = mem_printf("%s/%s", fixture->dir, name);
	struct stat st;

	if (lstat(path, &st) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	free(path);
	return st;
}

static bool exists(struct fixture *fixture, const char *name)
{
	char *path = mem_printf("%s/%s", fixture->dir, name);
	struct stat st;
	int r = lstat(path, &st);

	free(path);
	return r == 0;
}

static void make_file(struct fixture *fixture, const char *name)
{
	char *path = mem_printf("%s/%s", fixture->dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	free(path);
}

static unsigned count_entries(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void prepare(struct fixture *fixture)
{
	struct storage_dirs dirs;
	struct err err = {0};

	if (storage_prepare(&fixture->storage, id, -1, BASE_UID, false, &dirs, &err) < 0)
		fail_msg("%s", err.message);
	close(dirs.upper_fd);
	close(dirs.work_fd);
	close(dirs.workspace_fd);
}

static void clean(struct fixture *fixture, uint32_t parts)
{
	struct err err = {0};

	if (storage_clean(&fixture->storage, id, BASE_UID, parts, &err) < 0)
		fail_msg("%s", err.message);
}

#define SHARD	  "57"
#define LAYER	  "sandboxes/" SHARD "/0123456789abcdefghijklmnop" /* in its shard */
#define WORKSPACE "workspaces/0123456789abcdefghijklmnop"

/* A descriptor of the directory that layers of such ids are in. */
static int open_shard(struct fixture *fixture, const char *shard)
{
	int fd = openat(fixture->storage.sandboxes_fd, shard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void discard(struct fixture *fixture, const char *shard, const char *name)
{
	int fd = open_shard(fixture, shard);
	struct err err = {0};

	if (trash_discard(&fixture->storage.trash, fd, name, &err) < 0)
		fail_msg("%s", err.message);
	close(fd);
}

static int open_layer(struct fixture *fixture)
{
	int shard = open_shard(fixture, SHARD);
	int fd = openat(shard, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	close(shard);
	assert_true(fd >= 0);
	return fd;
}

static void assert_no_trash(struct fixture *fixture)
{
	assert_int_equal(count_entries(fixture->storage.trash.waiting_fd), 0);
	assert_int_equal(count_entries(fixture->storage.trash.removing_fd), 0);
}

/* --- tests --- */

static void its_own_directories_are_for_root_alone(void **state)
{
	static const char *const names[] = {"sandboxes", "workspaces", "templates", "trash",
		"shredder", "sandboxes/00", "sandboxes/ff"};

	for (size_t i = 0; i < array_len(names); i++) {
		struct stat st = look(*state, names[i]);

		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(st.st_mode & 07777, 0700);
		assert_int_equal(st.st_uid, 0);
	}
}

/* The keeper ends when it cannot open them, so what it had opened is for us to close. */
static void assert_refused(struct fixture *fixture)
{
	struct storage other;
	struct err err = {0};

	memset(&other, 0xff, sizeof(other)); /* -1 each */
	assert_true(storage_open(&other, fixture->dir, &err) < 0);
	assert_true(err.message[0]);
	close_storage(&other);
}

static void directories_of_somebody_else_are_refused(void **state)
{
	struct fixture *fixture = *state;
	char *path = mem_printf("%s/trash", fixture->dir);

	assert_int_equal(chmod(path, 0755), 0);
	assert_refused(fixture);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chown(path, 1234, 1234), 0);
	assert_refused(fixture);
	/* A link that leads to a good one is no good one. */
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("workspaces", path), 0);
	assert_refused(fixture);
	free(path);
}

static void a_sandbox_s_directories_belong_to_its_range(void **state)
{
	struct fixture *fixture = *state;

	prepare(fixture);
	assert_int_equal(look(fixture, LAYER).st_uid, 0);
	assert_int_equal(look(fixture, LAYER).st_mode & 07777, 0700);
	assert_int_equal(look(fixture, LAYER "/upper").st_uid, BASE_UID);
	assert_int_equal(look(fixture, LAYER "/work").st_uid, BASE_UID);
	assert_int_equal(look(fixture, WORKSPACE).st_uid, BASE_UID + 1000);
	assert_int_equal(look(fixture, WORKSPACE "/project_files").st_uid, BASE_UID);
	assert_int_equal(look(fixture, WORKSPACE "/agent_workspace").st_uid, BASE_UID + 1000);
	assert_int_equal(look(fixture, WORKSPACE "/outputs").st_uid, BASE_UID + 1000);
}

static void preparing_again_keeps_files_and_renews_the_work_directory(void **state)
{
	struct fixture *fixture = *state;

	prepare(fixture);
	make_file(fixture, LAYER "/upper/file");
	make_file(fixture, LAYER "/work/mark");
	make_file(fixture, WORKSPACE "/outputs/file");
	prepare(fixture);
	assert_true(exists(fixture, LAYER "/upper/file"));
	assert_false(exists(fixture, LAYER "/work/mark"));
	assert_true(exists(fixture, WORKSPACE "/outputs/file"));
}

/* What a sandbox leaves in the place of a directory must not lead the keeper anywhere. */
static void what_a_sandbox_put_in_the_place_of_a_part_is_replaced(void **state)
{
	struct fixture *fixture = *state;
	char *outputs = mem_printf("%s/" WORKSPACE "/outputs", fixture->dir);
	char *scratch = mem_printf("%s/" WORKSPACE "/agent_workspace", fixture->dir);
	char *canary = mem_printf("%s/canary", fixture->dir);

	prepare(fixture);
	assert_int_equal(mkdir(canary, 0700), 0);
	assert_int_equal(rmdir(outputs), 0);
	assert_int_equal(symlink(canary, outputs), 0);
	assert_int_equal(rmdir(scratch), 0);
	assert_int_equal(mkfifo(scratch, 0600), 0);
	prepare(fixture);
	assert_true(S_ISDIR(look(fixture, WORKSPACE "/outputs").st_mode));
	assert_true(S_ISDIR(look(fixture, WORKSPACE "/agent_workspace").st_mode));
	assert_int_equal(look(fixture, WORKSPACE "/outputs").st_uid, BASE_UID + 1000);
	assert_int_equal(look(fixture, "canary").st_uid, 0); /* untouched */
	free(outputs);
	free(scratch);
	free(canary);
}

static void cleaning_the_system_leaves_the_workspace(void **state)
{
	struct fixture *fixture = *state;

	prepare(fixture);
	make_file(fixture, LAYER "/upper/file");
	make_file(fixture, WORKSPACE "/outputs/file");
	clean(fixture, KEEPER_PART_SYSTEM);
	assert_false(exists(fixture, LAYER "/upper/file"));
	assert_true(exists(fixture, WORKSPACE "/outputs/file"));
	prepare(fixture); /* and it can be built again */
}

static void cleaning_the_scratch_leaves_the_project(void **state)
{
	struct fixture *fixture = *state;

	prepare(fixture);
	make_file(fixture, LAYER "/upper/file");
	make_file(fixture, WORKSPACE "/project_files/file");
	make_file(fixture, WORKSPACE "/outputs/file");
	make_file(fixture, WORKSPACE "/agent_workspace/file");
	clean(fixture, KEEPER_PART_SCRATCH);
	assert_true(exists(fixture, LAYER "/upper/file"));
	assert_true(exists(fixture, WORKSPACE "/project_files/file"));
	assert_false(exists(fixture, WORKSPACE "/outputs/file"));
	assert_false(exists(fixture, WORKSPACE "/agent_workspace/file"));
	assert_int_equal(look(fixture, WORKSPACE "/outputs").st_uid, BASE_UID + 1000);
}

static void removing_takes_what_is_named_and_twice_is_fine(void **state)
{
	struct fixture *fixture = *state;

	prepare(fixture);
	make_file(fixture, WORKSPACE "/outputs/file");
	clean(fixture, KEEPER_PART_LAYER_DIR);
	assert_false(exists(fixture, LAYER));
	assert_true(exists(fixture, WORKSPACE "/outputs/file"));
	clean(fixture, KEEPER_PART_WORKSPACE);
	assert_false(exists(fixture, WORKSPACE));
	clean(fixture, KEEPER_PART_SYSTEM | KEEPER_PART_SCRATCH | KEEPER_PART_LAYER_DIR |
			       KEEPER_PART_WORKSPACE);
	assert_int_equal(count_entries(fixture->storage.trash.waiting_fd), 2);
	trash_empty(&fixture->storage.trash);
	assert_no_trash(fixture);
}

static void the_trash_is_emptied_however_deep(void **state)
{
	struct fixture *fixture = *state;
	int fd, depth;

	prepare(fixture);
	fd = open_layer(fixture);
	for (depth = 0; depth < 3000; depth++) {
		int below, file = openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0000);

		assert_true(file >= 0);
		close(file);
		assert_int_equal(mkdirat(fd, "directory", 0000), 0);
		below = openat(fd, "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(below >= 0);
		close(fd);
		fd = below;
	}
	assert_int_equal(symlinkat("/etc", fd, "link"), 0);
	close(fd);
	discard(fixture, SHARD, id);
	assert_false(exists(fixture, LAYER));
	trash_empty(&fixture->storage.trash);
	assert_no_trash(fixture);
	trash_empty(&fixture->storage.trash);
}

static void the_trash_never_follows_a_link_out(void **state)
{
	struct fixture *fixture = *state;
	char *canary = mem_printf("%s/canary", fixture->dir);
	int fd;

	assert_int_equal(mkdir(canary, 0700), 0);
	make_file(fixture, "canary/file");
	prepare(fixture);
	fd = open_layer(fixture);
	assert_int_equal(symlinkat(canary, fd, "link"), 0);
	close(fd);
	fd = open_shard(fixture, SHARD);
	assert_int_equal(symlinkat(canary, fd, "top"), 0);
	close(fd);
	discard(fixture, SHARD, id);
	discard(fixture, SHARD, "top");
	trash_empty(&fixture->storage.trash);
	assert_no_trash(fixture);
	assert_true(exists(fixture, "canary/file"));
	free(canary);
}

static void discarding_what_is_not_there_is_fine(void **state)
{
	struct fixture *fixture = *state;

	discard(fixture, SHARD, "none");
	assert_no_trash(fixture);
}

static void make_id(struct fixture *fixture, unsigned n, bool workspace)
{
	char name[KEEPER_ID_LEN + 1];
	int fd;

	snprintf(name, sizeof(name), "%026u", n);
	fd = workspace ? dup(fixture->storage.workspaces_fd) : open_shard(fixture, SHARD);
	assert_int_equal(mkdirat(fd, name, 0700), 0);
	close(fd);
}

static void ids_are_listed_in_order_once_and_by_the_page(void **state)
{
	struct fixture *fixture = *state;
	char ids[4][KEEPER_ID_LEN + 1], after[KEEPER_ID_LEN + 1] = "";
	unsigned seen = 0, count;

	for (unsigned i = 0; i < 10; i++) { /* some here, some there, some in both */
		if (i % 3 != 0)
			make_id(fixture, i * 7 % 10, false);
		if (i % 3 != 1)
			make_id(fixture, i * 7 % 10, true);
	}
	assert_int_equal(mkdirat(fixture->storage.workspaces_fd, "not-an-id", 0700), 0);
	do {
		count = disk_list_list(&fixture->storage, after, ids, 4);
		for (unsigned i = 0; i < count; i++, seen++) {
			assert_int_equal(atoi(ids[i]), seen);
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == 4);
	assert_int_equal(seen, 10);
}

static void what_has_no_id_for_a_name_is_not_listed(void **state)
{
	static const char *const names[] = {"lost+found", ".generation",
		"ABCDEFGHJKMNPQRSTVWXYZ0123", "0123456789_bcdefghijklmnop",
		"0123456789abcdefghijklmnopq", "0123456789abcdefghijklmno",
		"0123456789abcdefghijklmno.img"};
	struct fixture *fixture = *state;
	char ids[8][KEEPER_ID_LEN + 1], image[KEEPER_ID_LEN + 8];

	for (size_t i = 0; i < array_len(names); i++)
		assert_int_equal(mkdirat(fixture->storage.workspaces_fd, names[i], 0700), 0);
	snprintf(image, sizeof(image), "%s.img", id);
	assert_int_equal(mkdirat(fixture->storage.workspaces_fd, image, 0700), 0);
	assert_int_equal(disk_list_list(&fixture->storage, "", ids, array_len(ids)), 1);
	assert_string_equal(ids[0], id);
}

static void the_owner_of_files_is_told_by_any_part_of_them(void **state)
{
	struct fixture *fixture = *state;
	uint32_t uid = 0;
	struct err err;

	assert_int_equal(disk_list_owner(&fixture->storage, id, &uid), -ENOENT);
	prepare(fixture);
	assert_int_equal(disk_list_owner(&fixture->storage, id, &uid), 1);
	assert_int_equal(uid, BASE_UID + 1000);
	assert_int_equal(
		storage_clean(&fixture->storage, id, BASE_UID, KEEPER_PART_LAYER_DIR, &err), 0);
	assert_int_equal(disk_list_owner(&fixture->storage, id, &uid), 1);
	assert_int_equal(uid, BASE_UID + 1000);
	assert_int_equal(
		storage_clean(&fixture->storage, id, BASE_UID, KEEPER_PART_WORKSPACE, &err), 0);
	assert_int_equal(disk_list_owner(&fixture->storage, id, &uid), -ENOENT);
}

static void usage_counts_files_and_bytes_of_both_trees(void **state)
{
	struct fixture *fixture = *state;
	struct keeper_stats before = {0}, after = {0}, none = {0};

	prepare(fixture);
	disk_list_usage(&fixture->storage, id, &before);
	make_file(fixture, LAYER "/upper/one");
	make_file(fixture, WORKSPACE "/outputs/two");
	disk_list_usage(&fixture->storage, id, &after);
	assert_int_equal(after.disk_files, before.disk_files + 2);
	assert_true(after.disk_bytes >= before.disk_bytes);
	disk_list_usage(&fixture->storage, "00000000000000000000000000", &none);
	assert_int_equal(none.disk_files, 0);
}

/* --- the home directory of a disk --- */

/* Any directory will do: that it is a file system of its own is nothing to storage. */
static int furnish(struct fixture *fixture)
{
	char *path = mem_printf("%s/home", fixture->dir);
	struct err err = {0};
	int fd;

	assert_int_equal(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(path);
	assert_true(fd >= 0);
	if (storage_init_home(fd, &err) < 0)
		fail_msg("%s", err.message);
	return fd;
}

static void prepare_home(struct fixture *fixture, int home)
{
	struct storage_dirs dirs;
	struct err err = {0};

	if (storage_prepare(&fixture->storage, id, home, BASE_UID, false, &dirs, &err) < 0)
		fail_msg("%s", err.message);
	close(dirs.upper_fd);
	close(dirs.work_fd);
	close(dirs.workspace_fd);
}

static void what_was_made_ahead_becomes_the_sandbox_s(void **state)
{
	struct fixture *fixture = *state;
	auto_fd int home = furnish(fixture);

	assert_int_equal(look(fixture, "home/upper").st_uid, 0);
	prepare_home(fixture, home);
	assert_int_equal(look(fixture, "home/upper").st_uid, BASE_UID);
	assert_int_equal(look(fixture, "home/work").st_uid, BASE_UID);
	assert_int_equal(look(fixture, "home/workspace").st_uid, BASE_UID + 1000);
	assert_int_equal(look(fixture, "home/workspace/project_files").st_uid, BASE_UID);
	assert_int_equal(look(fixture, "home/workspace/outputs").st_uid, BASE_UID + 1000);
	assert_int_equal(look(fixture, "home/trash").st_uid, 0);
	assert_false(exists(fixture, WORKSPACE));
	assert_false(exists(fixture, LAYER));
}

static void on_a_disk_a_new_start_keeps_files_and_removes_what_was_thrown_away(void **state)
{
	struct fixture *fixture = *state;
	auto_fd int home = furnish(fixture);
	struct err err = {0};

	prepare_home(fixture, home);
	make_file(fixture, "home/upper/system");
	make_file(fixture, "home/work/old");
	make_file(fixture, "home/workspace/outputs/scratch");
	make_file(fixture, "home/workspace/project_files/project");
	prepare_home(fixture, home);
	assert_true(exists(fixture, "home/upper/system"));
	assert_false(exists(fixture, "home/work/old"));
	assert_int_equal(storage_clean_home(home, KEEPER_PART_SCRATCH, &err), 0);
	assert_true(exists(fixture, "home/upper/system"));
	assert_false(exists(fixture, "home/workspace/outputs"));
	assert_int_equal(storage_clean_home(home, KEEPER_PART_LAYER_DIR, &err), 0);
	assert_false(exists(fixture, "home/upper"));
	prepare_home(fixture, home);
	assert_true(exists(fixture, "home/workspace/project_files/project"));
	assert_true(exists(fixture, "home/workspace/outputs"));
	assert_false(exists(fixture, "home/upper/system"));
	assert_true(exists(fixture, "home/reserve"));
	storage_empty_trash(home);
	for (size_t i = 0; i < 2; i++) {
		auto_fd int bin =
			openat(home, i ? "trash" : "shredder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_int_equal(count_entries(bin), 0);
	}
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ON_DISK(its_own_directories_are_for_root_alone),
		ON_DISK(directories_of_somebody_else_are_refused),
		ON_DISK(a_sandbox_s_directories_belong_to_its_range),
		ON_DISK(preparing_again_keeps_files_and_renews_the_work_directory),
		ON_DISK(what_a_sandbox_put_in_the_place_of_a_part_is_replaced),
		ON_DISK(cleaning_the_system_leaves_the_workspace),
		ON_DISK(cleaning_the_scratch_leaves_the_project),
		ON_DISK(removing_takes_what_is_named_and_twice_is_fine),
		ON_DISK(the_trash_is_emptied_however_deep),
		ON_DISK(the_trash_never_follows_a_link_out),
		ON_DISK(discarding_what_is_not_there_is_fine),
		ON_DISK(ids_are_listed_in_order_once_and_by_the_page),
		ON_DISK(what_has_no_id_for_a_name_is_not_listed),
		ON_DISK(the_owner_of_files_is_told_by_any_part_of_them),
		ON_DISK(usage_counts_files_and_bytes_of_both_trees),
		ON_DISK(what_was_made_ahead_becomes_the_sandbox_s),
		ON_DISK(on_a_disk_a_new_start_keeps_files_and_removes_what_was_thrown_away),
	};

	if (geteuid() != 0) {
		fprintf(stderr, "not proven: the keeper's storage can only be tested by root\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
