/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/process/limits.h"

#include "base/mem.h"

#include <sys/resource.h>

static const struct {
	int resource;
	rlim_t soft, hard;
} limits[] = {
	{RLIMIT_NOFILE, 1024, 65536},
	{RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
	{RLIMIT_MSGQUEUE, 819200, 819200},
	{RLIMIT_SIGPENDING, 4096, 4096},
	{RLIMIT_RTPRIO, 0, 0},
	{RLIMIT_NICE, 0, 0},
	/* The control group counts processes. */
	{RLIMIT_NPROC, RLIM_INFINITY, RLIM_INFINITY},
};

static rlim_t least(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

int limits_set(struct err *err)
{
	for (size_t i = 0; i < array_len(limits); i++) {
		struct rlimit now, wanted = {limits[i].soft, limits[i].hard};

		if (setrlimit(limits[i].resource, &wanted) == 0)
			continue;
		/* The keeper's own limit is the ceiling, where it may not raise it. */
		if (getrlimit(limits[i].resource, &now) < 0)
			return err_sys(err, "read resource limit %d", limits[i].resource);
		wanted.rlim_max = least(wanted.rlim_max, now.rlim_max);
		wanted.rlim_cur = least(wanted.rlim_cur, wanted.rlim_max);
		if (setrlimit(limits[i].resource, &wanted) < 0)
			return err_sys(err, "set resource limit %d", limits[i].resource);
	}
	return 0;
}

int limits_hold_cores(struct err *err)
{
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}) < 0)
		return err_sys(err, "hold the limit of cores at 1");
	return 0;
}
