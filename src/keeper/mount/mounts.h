/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount system calls that work by descriptor, which musl has no wrappers for. Each returns a
 * descriptor or 0, or -1 with errno. At the end the two steps that all of a sandbox's mounts take.
 */
#pragma once

#include "base/err.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x200
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

static inline int mounts_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path,
		flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* And cuts a clone off its origin: a mount that is made on the one must not appear on the other. */
static inline int mounts_set_attr(int fd, uint64_t set, int userns_fd, unsigned flags)
{
	struct mount_attr attr = {.attr_set = set,
		.propagation = MS_PRIVATE,
		.userns_fd = (set & MOUNT_ATTR_IDMAP) ? (uint64_t)userns_fd : 0};

	return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr));
}

static inline int mounts_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int mounts_set_string(int fs, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

static inline int mounts_set_flag(int fs, const char *key)
{
	return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, key, NULL, 0);
}

/* Creates the file system and gives it a detached mount. */
static inline int mounts_fsmount(int fs, unsigned attrs)
{
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
}

/* Opens the file system of a mount, to set options and reconfigure it. */
static inline int mounts_fspick(int mount_fd)
{
	return (int)syscall(SYS_fspick, mount_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
}

static inline int mounts_reconfigure(int fs)
{
	return (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
}

static inline int mounts_attach(int mount_fd, int target_fd)
{
	return (int)syscall(SYS_move_mount, mount_fd, "", target_fd, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Below a mount, whose root the target is; since Linux 6.5. */
static inline int mounts_attach_beneath(int mount_fd, int target_fd)
{
	return (int)syscall(SYS_move_mount, mount_fd, "", target_fd, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | MOVE_MOUNT_BENEATH);
}

/* Opens a place below dirfd without following any symbolic link: the layer may be hostile. */
static inline int mounts_open_beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/*
 * A clone of what is at dirfd/path ("" for dirfd itself) and of what is mounted below, with attributes;
 * detached, so that it can be carried into another namespace.
 */
int mounts_clone(int dirfd, const char *path, uint64_t attrs, int userns_fd, int *ret_fd,
	struct err *err) must_check;

/*
 * Attaches a mount at a name in a directory that no process of the sandbox has made, such as a
 * procfs.
 */
static inline int mounts_attach_at(int mount_fd, int dir_fd, const char *name)
{
	return (int)syscall(SYS_move_mount, mount_fd, "", dir_fd, name, MOVE_MOUNT_F_EMPTY_PATH);
}

/* Attaches a mount at a place below the working directory, which is the new root, and closes it. */
int mounts_place(int mount_fd, const char *place, struct err *err) must_check;

/*
 * The same in the place of what was attached there before, if anything was; at no time is the place empty. Changes
 * the working directory. With a kernel before 6.5 what was there stays below.
 */
int mounts_replace(int mount_fd, const char *place, struct err *err) must_check;
