/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the kernel. "open": those that change or tell of the host, one by one. "walk": every file of
 * /proc/sys, /sys and /proc that is not a process, opened for writing; prints those that could be.
 */
#include "attack.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

static const char *const to_write[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
	"/proc/sys/kernel/hotplug", "/proc/sys/kernel/usermodehelper/bset",
	"/proc/sys/kernel/hostname", "/proc/sys/kernel/randomize_va_space",
	"/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/shmall", "/proc/sys/kernel/sem",
	"/proc/sys/kernel/keys/maxkeys", "/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/drop_caches", "/proc/sys/fs/suid_dumpable",
	"/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/file-max",
	"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/core/somaxconn",
	"/proc/sys/user/max_user_namespaces", "/proc/sysrq-trigger",
	"/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/bus/pci/00/00.0", "/proc/scsi/scsi",
	"/proc/fs/nfsd/threads", "/proc/kcore", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
	"/sys/kernel/uevent_helper", "/sys/kernel/debug/x", "/sys/fs/cgroup/cgroup.procs",
	"/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
	"/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/memory/cgroup.event_control",
	"/sys/fs/cgroup/memory/memory.force_empty", "/sys/fs/cgroup/memory.max",
	"/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/unified/cgroup.procs",
	"/sys/fs/cgroup/unified/cgroup.freeze", "/sys/fs/cgroup/unified/cgroup.max.descendants",
	"/sys/firmware/efi/vars/new_var"};

static const char *const to_read[] = {"/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys",
	"/proc/key-users", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/iomem", "/proc/ioports",
	"/proc/interrupts", "/proc/timer_list", "/proc/sched_debug", "/proc/pagetypeinfo",
	"/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/config.gz",
	"/proc/cmdline", "/proc/modules", "/proc/bus/pci/devices", "/proc/bus/input/devices",
	"/proc/scsi/scsi", "/proc/acpi/wakeup", "/proc/driver/rtc", "/proc/fs/ext4",
	"/sys/firmware/dmi/tables/DMI", "/sys/class/dmi/id/product_uuid", "/sys/kernel/notes",
	"/sys/kernel/debug", "/sys/kernel/security", "/sys/module", "/sys/block", "/sys/fs/bpf",
	"/sys/class/net", "/dev/mem", "/dev/kmsg", "/dev/port", "/dev/vsock", "/dev/kvm",
	"/dev/fuse", "/dev/loop-control", "/dev/net/tun", "/dev/vda", "/dev/sda"};

static int is_process(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0 && (path[6] >= '0' && path[6] <= '9');
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	int fd;

	(void)at;
	if (kind == FTW_D && (is_process(path) || strcmp(path, "/proc/self") == 0 ||
				     strcmp(path, "/proc/thread-self") == 0))
		return FTW_SKIP_SUBTREE;
	if (kind != FTW_F || !S_ISREG(st->st_mode))
		return FTW_CONTINUE;
	fd = open(path, O_WRONLY | O_NONBLOCK);
	if (fd >= 0)
		printf("%s\tdone\n", path);
	close(fd);
	if (chmod(path, 0666) == 0)
		printf("chmod %s\tdone\n", path);
	return FTW_CONTINUE;
}

static void open_all(void)
{
	char byte;

	for (size_t i = 0; i < COUNT(to_write); i++) {
		int fd = open(to_write[i], O_WRONLY | O_TRUNC);
		struct stat st;

		/* Masked: what is written goes nowhere. */
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode)) {
			close(fd);
			fd = -1;
			errno = ENODATA;
		}
		tell(fd, "write %s", to_write[i]);
		close(fd);
	}
	for (size_t i = 0; i < COUNT(to_read); i++) {
		int fd = open(to_read[i], O_RDONLY | O_NONBLOCK);

		/* Open, but with nothing in it. */
		if (fd >= 0 && read(fd, &byte, 1) < 1 && errno != EISDIR) {
			close(fd);
			fd = -1;
			errno = ENODATA;
		}
		tell(fd, "read %s", to_read[i]);
		close(fd);
	}
}

int main(int argc, char *argv[])
{
	if (argc > 1 && strcmp(argv[1], "walk") == 0) {
		nftw("/proc", visit, 64, FTW_PHYS | FTW_ACTIONRETVAL);
		nftw("/sys", visit, 64, FTW_PHYS | FTW_ACTIONRETVAL);
		tell_count("walked", 1);
	} else {
		open_all();
	}
	return 0;
}
