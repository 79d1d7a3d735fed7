/* SPDX-License-Identifier: Apache-2.0 */
/* More rights, more priority, higher limits, and the things of the machine that only its owner may set. */
#include "attack.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

static const int limits[] = {RLIMIT_NOFILE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING,
	RLIMIT_RTPRIO, RLIMIT_NICE};

static void raise_caps(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	memset(data, 0xff, sizeof(data));
	tell(syscall(SYS_capset, &header, data), "all capabilities");
	for (int cap = 0; cap < 41; cap++) {
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
			tell(0, "ambient capability %d", cap);
	}
	tell(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), "take back no_new_privs");
	tell(prctl(PR_SET_SECCOMP, 0, 0, 0, 0), "take back seccomp");
	tell(prctl(PR_SET_SECUREBITS, 0), "securebits");
}

static void hurry(void)
{
	struct sched_param param = {.sched_priority = 1};
	struct {
		unsigned size, policy;
		unsigned long flags;
		int nice;
		unsigned priority;
		unsigned long runtime, deadline, period;
	} deadline = {sizeof(deadline), 6, 0, 0, 0, 1000000, 2000000, 2000000};

	tell(sched_setscheduler(0, SCHED_FIFO, &param), "SCHED_FIFO");
	tell(sched_setscheduler(0, SCHED_RR, &param), "SCHED_RR");
	tell(syscall(SYS_sched_setattr, 0, &deadline, 0), "SCHED_DEADLINE");
	tell(setpriority(PRIO_PROCESS, 0, -20), "nice -20");
	tell(syscall(SYS_ioprio_set, 1, 0, 1 << 13), "real time i/o");
}

static void lift_limits(void)
{
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct rlimit limit;

		getrlimit(limits[i], &limit);
		limit.rlim_max++;
		tell(setrlimit(limits[i], &limit), "limit %d", limits[i]);
	}
}

static void own_the_machine(void)
{
	struct timeval time = {.tv_sec = 1};
	struct timespec clock = {.tv_sec = 1};
	struct timex timex = {.modes = ADJ_FREQUENCY};
	char line[16];

	tell(settimeofday(&time, NULL), "settimeofday");
	tell(clock_settime(CLOCK_REALTIME, &clock), "clock_settime");
	tell(adjtimex(&timex), "adjtimex");
	tell(sethostname("evil", 4), "sethostname");
	tell(klogctl(3, line, sizeof(line)), "read the kernel's log");
	tell(klogctl(8, NULL, 1), "silence the console");
	tell(swapon("/dev/zero", 0), "swapon");
	tell(mlock(malloc(64 << 20), 64 << 20), "lock 64 MiB");
	tell(syscall(SYS_personality, 0x0400000), "READ_IMPLIES_EXEC");
	tell(syscall(SYS_personality, 0x0100000), "MMAP_PAGE_ZERO");
	tell(syscall(SYS_personality, 0x100000000l | 0x0400000),
		"READ_IMPLIES_EXEC with a high bit");
	tell(mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) ==
				MAP_FAILED
			? -1
			: 0,
		"a huge page");
	tell(memfd_create("x", MFD_HUGETLB), "a file of huge pages");
}

int main(void)
{
	raise_caps();
	hurry();
	lift_limits();
	own_the_machine();
	return 0;
}
