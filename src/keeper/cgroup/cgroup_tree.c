/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cgroup_tree.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/cgroup/cgroup_delegation.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const controller_names[CGROUP_COUNT] = {"memory", "cpu", "pids"};

const char *cgroup_tree_controller(enum cgroup_controller controller)
{
	return controller_names[controller];
}

/* Opens the mount point of a hierarchy: v2 (controller NULL) or the v1 one with a controller. */
static int open_hierarchy(const char *controller)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;
	int fd = -1;

	if (!mounts)
		return -1;
	while (fd < 0 && (entry = getmntent(mounts))) {
		bool v2 = strcmp(entry->mnt_type, "cgroup2") == 0;
		bool v1 = strcmp(entry->mnt_type, "cgroup") == 0;

		if (controller ? (v1 && hasmntopt(entry, controller)) : v2)
			fd = open(entry->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	endmntent(mounts);
	return fd;
}

/*
 * The root of the v2 tree. Our groups live there, not below the group we were started in: only the
 * root may have processes and children with controllers, so no process has to be moved, and a
 * service manager that restarts the daemon does not meet our groups.
 */
static int open_unified(bool is_host, struct err *err)
{
	auto_fd int root = open_hierarchy(NULL);

	if (!is_host)
		return cgroup_delegation_open(root, NULL);
	if (root < 0)
		return err_explain(err, ERR_UNAVAILABLE, "no_cgroup2",
			"mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified",
			"no cgroup2 tree is mounted; it is needed to freeze and kill sandboxes");
	return take_fd(&root);
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len) {
		bool starts = at == text || at[-1] == ' ';
		bool ends = at[len] == ' ' || at[len] == '\n' || !at[len];

		if (starts && ends)
			return true;
	}
	return false;
}

int cgroup_tree_open_dir(int parent, const char *name, struct err *err)
{
	int fd;

	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make cgroup %s", name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open cgroup %s", name);
	return fd;
}

/* Lets a v2 controller reach the children of a group. */
static int enable_v2(int fd, const char *controller)
{
	char word[32];

	snprintf(word, sizeof(word), "+%s", controller);
	return fd_write_file(fd, "cgroup.subtree_control", word);
}

/* Where our groups begin in the v1 hierarchy of a controller. */
static int open_v1(const char *name, bool is_host)
{
	auto_fd int root = open_hierarchy(name);

	return is_host || root < 0 ? take_fd(&root) : cgroup_delegation_open(root, name);
}

/* A controller that the unified tree offers is used there, else on its v1 hierarchy, if it has one. */
static int find_controller(struct cgroup_tree *tree, enum cgroup_controller c, int root_fd,
	const char *offered, bool is_host, struct err *err)
{
	const char *name = controller_names[c];
	auto_fd int root = -1;

	if (has_word(offered, name)) {
		int r = enable_v2(root_fd, name);

		if (r == 0)
			r = enable_v2(tree->unified_fd, name);
		if (r < 0 && !is_host) {
			tree->missing |= 1u << c;
			return 0;
		}
		if (r < 0)
			return err_from(err, r, "enable the %s controller for our cgroup", name);
		return 0;
	}
	root = open_v1(name, is_host);
	if (root < 0) {
		tree->missing |= 1u << c;
		return 0;
	}
	tree->v1_fd[c] = cgroup_tree_open_dir(root, tree->name, err);
	return tree->v1_fd[c] < 0 ? tree->v1_fd[c] : 0;
}

int cgroup_tree_open(struct cgroup_tree *tree, const char *tag, bool is_host, struct err *err)
{
	char offered[256] = "";
	auto_fd int root_fd = open_unified(is_host, err);

	*tree = CGROUP_TREE_NONE;
	if (root_fd < 0)
		return is_host ? root_fd : 0;
	if (!is_host && cgroup_delegation_step_down(root_fd) < 0)
		return err_sys(err, "step out of the way of our cgroups");
	tree->missing = 0;
	tree->is_host = is_host;
	snprintf(tree->name, sizeof(tree->name), "sandlot-%s", tag);
	tree->unified_fd = cgroup_tree_open_dir(root_fd, tree->name, err);
	if (tree->unified_fd < 0)
		return tree->unified_fd;
	if (fd_read_file(root_fd, "cgroup.controllers", offered, sizeof(offered)) < 0)
		return err_sys(err, "read cgroup.controllers");
	for (int c = 0; c < CGROUP_COUNT; c++) {
		int r = find_controller(tree, c, root_fd, offered, is_host, err);

		if (r < 0)
			return r;
	}
	return 0;
}

void cgroup_tree_close(struct cgroup_tree *tree)
{
	char up[48];

	snprintf(up, sizeof(up), "../%s", tree->name);
	for (int c = -1; c < CGROUP_COUNT; c++) {
		int fd = c < 0 ? tree->unified_fd : tree->v1_fd[c];

		if (fd < 0)
			continue;
		if (unlinkat(fd, up, AT_REMOVEDIR) < 0)
			log_warning("cgroup %s stays: %s", tree->name, strerror(errno));
		fd_close(fd);
	}
}
