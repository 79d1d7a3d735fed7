/* SPDX-License-Identifier: Apache-2.0 */
/* Every family, type and protocol of sockets that there might be; prints those that could be made. */
#include "attack.h"

#include <sys/socket.h>

#define FAMILIES 64

static const int protocols[] = {
	0, 1, 2, 3, 6, 9, 12, 15, 16, 17, 33, 47, 58, 115, 132, 136, 255, 262};

int main(void)
{
	for (int family = 0; family < FAMILIES; family++) {
		for (int type = 0; type < 16; type++) {
			int pair[2];

			for (size_t i = 0; i < COUNT(protocols); i++) {
				int fd = socket(family, type, protocols[i]);

				if (fd >= 0)
					printf("socket %d %d %d\tdone\n", family, type,
						protocols[i]);
				close(fd);
			}
			if (socketpair(family, type, 0, pair) == 0)
				printf("pair %d %d\tdone\n", family, type);
		}
	}
	/* The kernel reads an int: what is above must not hide the family from a filter. */
	tell(syscall(SYS_socket, 0x100000000l | 40, SOCK_STREAM, 0), "vsock with a high bit");
	tell(syscall(SYS_socket, 0x7fffffff00000000l | AF_INET, SOCK_RAW, 1), "raw with high bits");
	return 0;
}
