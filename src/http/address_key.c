/* SPDX-License-Identifier: Apache-2.0 */
#include "http/address_key.h"

#include <netinet/in.h>
#include <string.h>

uint64_t address_key_of(const struct sockaddr *address)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	uint64_t key = 0;
	uint32_t v4 = 0;

	if (address->sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&key, &v6->sin6_addr, sizeof(key));
		return key ? key : 1; /* ::1 has nothing in its first half */
	}
	if (address->sa_family == AF_INET6)
		memcpy(&v4, (const char *)&v6->sin6_addr + 12, sizeof(v4));
	else if (address->sa_family == AF_INET)
		v4 = ((const struct sockaddr_in *)address)->sin_addr.s_addr;
	return UINT64_C(1) << 32 | v4;
}
