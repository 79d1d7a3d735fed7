/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/own_address.h"

#include "base/fd.h"

#include <sys/socket.h>

/* The kernel binds a socket only to an address of this machine. */
bool own_address_is(struct address address)
{
	struct sockaddr_storage here;
	socklen_t len = address_to_socket(address_meant(address), 0, &here);
	auto_fd int sock = socket(here.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return sock >= 0 && bind(sock, (const struct sockaddr *)&here, len) == 0;
}
