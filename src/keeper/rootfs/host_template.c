/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/host_template.h"
#include "keeper/disk/trash.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_DEPTH_MAX 8
#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const struct {
	const char *path;
	mode_t mode;
	uid_t uid;
} directories[] = {
	{"dev", 0755, 0},
	{"etc", 0755, 0},
	{"etc/profile.d", 0755, 0},
	{"home", 0755, 0},
	{"home/sandbox", 0755, 1000},
	{"mnt", 0755, 0},
	{"opt", 0755, 0},
	{KEEPER_LAYER_PLACE, 0755, 0},
	{"opt/sandlot", 0755, 0},
	{"opt/sandlot/bin", 0755, 0},
	{"proc", 0555, 0},
	{"root", 0700, 0},
	{"run", 0755, 0},
	{"run/lock", 01777, 0},
	{"srv", 0755, 0},
	{"sys", 0755, 0},
	{"tmp", 01777, 0},
	{"usr", 0755, 0},
	{"var", 0755, 0},
	{"var/cache", 0755, 0},
	{"var/empty", 0555, 0},
	{"var/lib", 0755, 0},
	{"var/log", 0755, 0},
	{"var/tmp", 01777, 0},
	{"workspace", 0755, 0},
};

static const struct {
	const char *path;
	const char *target;
} links[] = {
	{"var/run", "/run"},
	{"var/lock", "/run/lock"},
	{"etc/mtab", "/proc/self/mounts"},
	{"etc/os-release", "../usr/lib/os-release"},
};

/* Debian's commands would fail at a lock file and not say why. What does not install is passed on. */
#define APT(name)                                                                                  \
	"#!/bin/sh\n"                                                                              \
	"for word; do\n"                                                                           \
	"\tcase $word in\n"                                                                        \
	"\t-*) ;;\n"                                                                               \
	"\tupdate | install | reinstall | remove | purge | autoremove | upgrade | *-upgrade)\n"    \
	"\t\techo \"" name                                                                         \
	": this sandbox has the programs of its host, read-only; use pip or npm -g, "              \
	"or start from an image, where apt works: sandlot run -it -t debian12\" "                  \
	">&2\n"                                                                                    \
	"\t\texit 100 ;;\n"                                                                        \
	"\t*) break ;;\n"                                                                          \
	"\tesac\n"                                                                                 \
	"done\n"                                                                                   \
	"exec /usr/bin/" name " \"$@\"\n"

/*
 * The disk of a sandbox is a larger file system of which a part is kept from it. What it may use is what it uses and
 * what is available; df would print the size of the whole.
 */
static const char df[] =
	"#!/bin/sh\n"
	"exec 4>&1\n"
	"status=$({ { /usr/bin/df \"$@\"; echo $? >&3; } | awk '\n"
	"function bytes(text, unit) {\n"
	"\tunit = index(\"KMGTPE\", toupper(substr(text, length(text))))\n"
	"\treturn (text + 0) * (unit ? 1024 ^ unit : 1)\n"
	"}\n"
	"function show(number, like, unit) {\n"
	"\tif (like !~ /[A-Za-z]$/) return sprintf(\"%.0f\", number)\n"
	"\tfor (unit = 0; number >= 1024 && unit < 6; unit++) number /= 1024\n"
	"\treturn sprintf(number < 10 && unit ? \"%.1f%s\" : \"%.0f%s\", number, "
	"substr(\"KMGTPE\", unit, "
	"unit > 0))\n"
	"}\n"
	"NR == 1 {\n"
	"\tfor (i = 1; i <= NF; i++) if ($i == \"Used\") used = i\n"
	"\tif ($0 !~ /Avail/ || $(used + 2) !~ /%$/) used = 0\n"
	"}\n"
	"NR > 1 && used && bytes($(used - 1)) > 1.01 * (bytes($used) + bytes($(used + 1))) {\n"
	"\tsize = $(used - 1)\n"
	"\tlimit = show(bytes($used) + bytes($(used + 1)), size)\n"
	"\tat = index($0, \" \" size \" \")\n"
	"\t$0 = substr($0, 1, at) sprintf(\"%\" length(size) \"s\", limit) substr($0, at + 1 + "
	"length(size))\n"
	"}\n"
	"{ print }' >&4; } 3>&1)\n"
	"exit \"$status\"\n";

static const struct {
	const char *path;
	const char *text;
	mode_t mode; /* 0: 0644 */
} files[] = {
	{"etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
		       "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
		       "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
		       "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"etc/group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nstaff:x:50:\n"
		      "users:x:100:\nsandbox:x:1000:\nnogroup:x:65534:\n"},
	{"etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
	{"etc/hostname", "sandbox\n"},
	{"etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			      "services: files\nprotocols: files\n"},
	{"etc/shells", "/bin/sh\n/bin/bash\n"},
	/* /etc/profile sets another PATH for login shells. */
	{"etc/profile.d/sandlot.sh", "PATH=\"$HOME/.local/bin:/opt/sandlot/bin:$PATH\"\n"},
	{"opt/sandlot/bin/apt", APT("apt"), 0755},
	{"opt/sandlot/bin/apt-get", APT("apt-get"), 0755},
	{"opt/sandlot/bin/df", df, 0755},
};

/* What is copied from the host's /etc; patterns of names directly below it. */
static const char *const from_etc[] = {
	"alternatives",
	"bash.bashrc",
	"ca-certificates*",
	"chromium*",
	"debian_version",
	"fonts",
	"gai.conf",
	"inputrc",
	"java-*",
	"ld.so.*",
	"locale.alias",
	"localtime",
	"matplotlibrc",
	"magic*",
	"maven",
	"mime.types",
	"perl",
	"profile",
	"protocols",
	"python*",
	"services",
	"ssl",
	"terminfo",
	"timezone",
	"vim",
};

/* The top-level names that a merged /usr makes links. */
static const char *const usr_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

static int make_file(int root, const char *path, const char *text, mode_t mode, struct err *err)
{
	auto_fd int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(err, "make template file %s", path);
	if (fchmod(fd, mode ? mode : 0644) < 0 ||
		write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return err_sys(err, "write template file %s", path);
	return 0;
}

static int make_tables(int root, struct err *err)
{
	for (size_t i = 0; i < array_len(directories); i++) {
		const char *path = directories[i].path;

		if (mkdirat(root, path, 0755) < 0 ||
			fchownat(root, path, directories[i].uid, directories[i].uid, 0) < 0 ||
			fchmodat(root, path, directories[i].mode, 0) < 0)
			return err_sys(err, "make template directory %s", path);
	}
	for (size_t i = 0; i < array_len(links); i++) {
		if (symlinkat(links[i].target, root, links[i].path) < 0)
			return err_sys(err, "make template link %s", links[i].path);
	}
	for (size_t i = 0; i < array_len(files); i++) {
		int r = make_file(root, files[i].path, files[i].text, files[i].mode, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int link_usr(int root, struct err *err)
{
	for (size_t i = 0; i < array_len(usr_links); i++) {
		char from[16], target[64];
		ssize_t len;

		snprintf(from, sizeof(from), "/%s", usr_links[i]);
		len = readlink(from, target, sizeof(target) - 1);
		if (len < 0 && errno == ENOENT)
			continue;
		if (len < 0)
			return err_explain(err, ERR_UNAVAILABLE, "usr_not_merged",
				"apt-get install usrmerge",
				"the host template needs a merged /usr, but %s is not a link into "
				"it",
				from);
		target[len] = '\0';
		if (symlinkat(target, root, usr_links[i]) < 0)
			return err_sys(err, "make template link %s", usr_links[i]);
	}
	return 0;
}

static void copy_file(int from, int to, const char *name, const struct stat *st)
{
	auto_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_fd int out = -1;
	off_t left = st->st_size;

	if (in < 0)
		return;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out < 0)
		return;
	fchmod(out, (st->st_mode & 0111) ? 0755 : 0644);
	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n <= 0)
			return;
		left -= n;
	}
}

static void copy_tree(int from, int to, const char *name, int depth);

static void copy_dir(int from, int to, const char *name, int depth)
{
	auto_fd int in = openat(from, name, OPEN_DIR_FLAGS);
	int listing = in < 0 ? -1 : openat(in, ".", OPEN_DIR_FLAGS);
	DIR *dir = listing < 0 ? NULL : fdopendir(listing);
	auto_fd int out = -1;
	struct dirent *entry;

	if (!dir) {
		fd_close(listing);
		return;
	}
	if (mkdirat(to, name, 0755) == 0)
		out = openat(to, name, OPEN_DIR_FLAGS);
	while (out >= 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			copy_tree(in, out, entry->d_name, depth + 1);
	}
	closedir(dir);
}

/*
 * Copies files that every user of the host may read; the rest (keys in ssl/private, for example) is
 * left out.
 */
static void copy_tree(int from, int to, const char *name, int depth)
{
	char target[4096];
	struct stat st;
	ssize_t len;

	if (depth > COPY_DEPTH_MAX || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISLNK(st.st_mode)) {
		len = readlinkat(from, name, target, sizeof(target) - 1);
		if (len > 0) {
			target[len] = '\0';
			(void)!symlinkat(target, to, name);
		}
	} else if (S_ISREG(st.st_mode) && (st.st_mode & 0004)) {
		copy_file(from, to, name, &st);
	} else if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005) {
		copy_dir(from, to, name, depth);
	}
}

static int copy_etc(int root, struct err *err)
{
	auto_fd int to = openat(root, "etc", OPEN_DIR_FLAGS);
	auto_fd int from = open("/etc", OPEN_DIR_FLAGS);
	int listing = from < 0 ? -1 : openat(from, ".", OPEN_DIR_FLAGS);
	DIR *dir = listing < 0 ? NULL : fdopendir(listing);
	struct dirent *entry;

	if (!dir || to < 0) {
		fd_close(dir ? -1 : listing);
		return err_sys(err, "open /etc");
	}
	while ((entry = readdir(dir))) {
		for (size_t i = 0; i < array_len(from_etc); i++) {
			if (fnmatch(from_etc[i], entry->d_name, FNM_PERIOD) == 0)
				copy_tree(from, to, entry->d_name, 0);
		}
	}
	closedir(dir);
	return 0;
}

int host_template_make(const struct storage *storage, int *ret_fd, struct err *err)
{
	auto_fd int root = -1;
	int r = trash_discard(&storage->trash, storage->templates_fd, "host", err);

	if (r < 0)
		return r;
	if (mkdirat(storage->templates_fd, "host", 0755) < 0)
		return err_sys(err, "make the host template");
	root = openat(storage->templates_fd, "host", OPEN_DIR_FLAGS);
	if (root < 0 || fchmod(root, 0755) < 0)
		return err_sys(err, "open the host template");
	if ((r = make_tables(root, err)) < 0 || (r = link_usr(root, err)) < 0 ||
		(r = copy_etc(root, err)) < 0)
		return r;
	*ret_fd = take_fd(&root);
	return 0;
}
