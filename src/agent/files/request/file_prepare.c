/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREPARE: makes the system of an image ready for its commands. It finds out who they run as, makes the directories
 * that the image promises, durable where it says so, and gives the workspace to that user. All of it may be done again.
 */
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "agent/files/request/volume_link.h"
#include "base/fd.h"
#include "wire/user_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define USERS_MAX (1024u * 1024) /* bytes of /etc/passwd, or of /etc/group, that are looked at */

/* The text of a file; "" if there is none. The caller frees it. */
static char *read_text(const char *path)
{
	struct stat stat;
	auto_fd int fd = path_open_regular(AT_FDCWD, path, 0, 0, &stat);
	char *text = mem_new(USERS_MAX + 1);
	size_t len = 0;

	while (fd >= 0 && len < USERS_MAX) {
		ssize_t n = read(fd, text + len, USERS_MAX - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return text;
}

static enum agent_user_fault find_user(const char *text, struct user_lookup *ret_user)
{
	auto_free char *passwd = read_text("/etc/passwd");
	auto_free char *group = read_text("/etc/group");

	return user_lookup_find(text, passwd, group, ret_user);
}

/* 1: it was made. */
static int make_dir(const char *path, const struct path_owner *owner)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	auto_fd int fd = path_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	int r;

	if (fd >= 0)
		return 0;
	r = path_locate_new(path, &place);
	if (r == 0)
		r = path_complete(&place, owner->uid);
	if (r < 0)
		return r;
	if (mkdirat(place.dir, place.name, 0755) < 0)
		return -errno;
	fd = path_open(place.dir, place.name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd >= 0)
		path_give(fd, owner);
	return 1;
}

/* Images name places that cannot be here, such as below /sys: these stay away. A full disk does not pass for that.
 * A line that begins with + is one that was made before, and is to be durable. 1: some were made. */
static int make_dirs(const struct helper_io *helper_io, char *dirs, const struct path_owner *owner)
{
	char *rest = NULL;
	int made = 0;

	for (char *path = strtok_r(dirs, "\n", &rest); path; path = strtok_r(NULL, "\n", &rest)) {
		int r = path[0] == '/'	 ? make_dir(path, owner)
			: path[0] == '+' ? volume_link_make(helper_io, path + 1)
					 : 0;

		if (r == -ENOSPC || r == -EDQUOT || r == -EIO)
			return r;
		made |= r > 0;
	}
	return made;
}

/*
 * Not what is in it: in a workspace from before, that is whoever's it was. True if it was another's. Root, who may
 * write anywhere, leaves it to the user who has it, as whoever comes next may be that user.
 */
static bool give_workspace(int workspace, const struct path_owner *owner)
{
	static const char *const parts[] = {"agent_workspace", "outputs"};
	struct stat stat;

	if (fstat(workspace, &stat) < 0 || owner->uid == 0 ||
		(stat.st_uid == owner->uid && stat.st_gid == owner->gid))
		return false;
	path_give(workspace, owner);
	for (size_t i = 0; i < array_len(parts); i++) {
		auto_fd int fd =
			path_open(workspace, parts[i], O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

		if (fd >= 0)
			path_give(fd, owner);
	}
	return true;
}

int file_prepare(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_fd int workspace = path_open(AT_FDCWD, request->path, O_PATH | O_DIRECTORY, 0);
	auto_fd int skeleton = -1;
	struct user_lookup user = {0};
	enum agent_user_fault fault;
	struct path_owner owner;
	struct stat stat;
	int r = 0;

	if (workspace < 0)
		return workspace;
	fault = find_user(request->to, &user);
	owner = (struct path_owner){.uid = user.uid, .gid = user.gid};
	if (fault == AGENT_USER_FOUND) {
		r = make_dirs(helper_io, request->dirs, &owner);
		if (r < 0)
			return r;
		r |= give_workspace(workspace, &owner);
	}
	if (request->after[0] == '/')
		skeleton = path_open(AT_FDCWD, request->after, O_PATH | O_DIRECTORY, 0);
	if (fstat(workspace, &stat) < 0)
		return -errno;
	helper_io_put_answer(helper_io, &stat, r == 0 && skeleton < 0 ? AGENT_FILE_EXISTED : 0, "");
	helper_io_put_u8(helper_io, (uint8_t)fault);
	helper_io_put_u32(helper_io, user.uid);
	helper_io_put_u32(helper_io, user.gid);
	helper_io_put_u8(helper_io, skeleton >= 0);
	helper_io_put_str(helper_io, user.home);
	helper_io_put_u32(helper_io, user.group_count);
	for (uint32_t i = 0; i < user.group_count; i++)
		helper_io_put_u32(helper_io, user.groups[i]);
	return 0;
}
