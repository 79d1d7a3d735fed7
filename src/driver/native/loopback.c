/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/loopback.h"

#include "base/fd.h"
#include "model/address.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

/* In the form that the socket takes: one of IPv6 is for both versions. */
static socklen_t write_target(int sock, bool is_v6, uint16_t port, struct sockaddr_storage *out)
{
	struct address address = is_v6 ? (struct address){in6addr_loopback}
				       : address_from_v4((struct in_addr){htonl(INADDR_LOOPBACK)});
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	if (fd_family(sock) == AF_INET)
		return address_to_socket(address, port, out);
	*v6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_addr = address.bytes, .sin6_port = htons(port)};
	return sizeof(*v6);
}

int loopback_connect(int sock, bool is_v6, uint16_t port, int timeout_ms)
{
	struct pollfd ready = {.fd = sock, .events = POLLOUT};
	struct sockaddr_storage to;
	socklen_t len = write_target(sock, is_v6, port, &to);
	int failed = 0;

	if (connect(sock, (struct sockaddr *)&to, len) == 0)
		return 0;
	/* Where there is no IPv6, nobody listens there. */
	if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)
		return -ECONNREFUSED;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&ready, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	len = sizeof(failed);
	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &failed, &len) < 0)
		return -errno;
	return -failed;
}
