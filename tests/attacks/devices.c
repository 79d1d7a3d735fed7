/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device nodes of one's own, changes of those that are there, the terminal's dangerous requests, and how
 * they are hidden from a filter.
 */
#include "attack.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static const struct {
	const char *name;
	mode_t type;
	unsigned major, minor;
} nodes[] = {
	{"mem", S_IFCHR, 1, 1},
	{"null", S_IFCHR, 1, 3},
	{"kmsg", S_IFCHR, 1, 11},
	{"console", S_IFCHR, 5, 1},
	{"tun", S_IFCHR, 10, 200},
	{"kvm", S_IFCHR, 10, 232},
	{"vhost-vsock", S_IFCHR, 10, 241},
	{"loop0", S_IFBLK, 7, 0},
	{"sda", S_IFBLK, 8, 0},
	{"vda", S_IFBLK, 254, 0},
};

static const char *const places[] = {"/tmp", "/dev/shm", "/workspace/outputs", "/dev", "/var/tmp"};

static const struct {
	const char *name;
	unsigned long request;
} requests[] = {
	{"TIOCSTI", TIOCSTI},
	{"TIOCLINUX", 0x541C},
	{"TIOCSETD", TIOCSETD},
	{"TIOCCONS", TIOCCONS},
};

static const char *const shared[] = {
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};

static void change(const char *path)
{
	tell(chmod(path, 0600), "chmod %s", path);
	tell(chown(path, getuid(), getgid()), "chown %s", path);
	tell(utimensat(AT_FDCWD, path, NULL, 0), "touch %s", path);
	tell(setxattr(path, "user.mine", "x", 1, 0), "setxattr %s", path);
	tell(unlink(path), "unlink %s", path);
}

int main(void)
{
	static const unsigned long high[] = {0, 1ul << 32, 1ul << 63, 0xffffffff00000000};
	int master, slave;
	char byte = 'x';

	for (size_t i = 0; i < COUNT(places); i++) {
		for (size_t j = 0; j < COUNT(nodes); j++) {
			char path[96];

			snprintf(path, sizeof(path), "%s/node-%s", places[i], nodes[j].name);
			tell(mknod(path, nodes[j].type | 0666,
				     makedev(nodes[j].major, nodes[j].minor)),
				"mknod %s", path);
			if (access(path, F_OK) == 0)
				tell(open(path, O_RDWR | O_NONBLOCK), "open %s", path);
		}
	}
	for (size_t i = 0; i < COUNT(shared); i++)
		change(shared[i]);
	if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
		tell(-1, "openpty");
		return 1;
	}
	for (size_t i = 0; i < COUNT(requests); i++) {
		for (size_t j = 0; j < COUNT(high); j++)
			tell(syscall(SYS_ioctl, slave, requests[i].request | high[j], &byte),
				"%s %zu", requests[i].name, j);
	}
	return 0;
}
