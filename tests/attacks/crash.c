/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the limit of cores by both calls, soft and hard, as its argument says, and crashes. */
#include "attack.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

int main(int argc, char *argv[])
{
	rlim_t value = argc > 1 && strcmp(argv[1], "max") == 0
			       ? RLIM_INFINITY
			       : (rlim_t)atol(argc > 1 ? argv[1] : "0");
	struct rlimit limit = {value, value}, now;

	/* Answered as if it had been done. */
	tell(setrlimit(RLIMIT_CORE, &limit), "setrlimit");
	tell(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL), "prlimit64");
	tell(syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, &limit, NULL), "prlimit64 by pid");
#if defined(SYS_setrlimit)
	tell(syscall(SYS_setrlimit, RLIMIT_CORE, &limit), "SYS_setrlimit");
#endif
	getrlimit(RLIMIT_CORE, &now);
	printf("soft\t%ld\nhard\t%ld\n", (long)now.rlim_cur, (long)now.rlim_max);
	fflush(stdout);
	prctl(PR_SET_DUMPABLE, 1);
	*(volatile int *)8 = 1;
	return 0;
}
