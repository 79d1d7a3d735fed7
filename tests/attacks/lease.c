/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a write lease and an exclusive lock on the file that is its argument and watches it; keeps all
 * three, says so, and then what it saw others do with the file.
 */
#include "attack.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>

int main(int argc, char *argv[])
{
	int fd = open(argc > 1 ? argv[1] : "/usr/bin/true", O_RDONLY);
	int watch = inotify_init1(0);
	char events[4096];

	signal(SIGIO, SIG_IGN);
	tell(fcntl(fd, F_SETLEASE, F_WRLCK), "lease");
	tell(flock(fd, LOCK_EX | LOCK_NB), "lock");
	tell(inotify_add_watch(watch, argc > 1 ? argv[1] : "/usr/bin/true", IN_OPEN | IN_ACCESS),
		"watch");
	while (read(watch, events, sizeof(events)) > 0)
		tell(0, "saw somebody");
	return 0;
}
