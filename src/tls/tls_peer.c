/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_peer.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

struct tls_peer *tls_peer_new(void)
{
	struct tls_peer *peer = mem_new(sizeof(*peer));

	atomic_init(&peer->refs, 2);
	return peer;
}

void tls_peer_unref(struct tls_peer *peer)
{
	if (!peer || atomic_fetch_sub(&peer->refs, 1) != 1)
		return;
	free(atomic_load(&peer->server_name));
	free(peer);
}

void tls_peer_set_server_name(struct tls_peer *peer, const char *name)
{
	atomic_store(&peer->server_name, mem_strdup(name));
}

/* Without the port, which is no colon within the brackets of an IPv6 address, and the dot at the end. */
static size_t name_len(const char *host)
{
	const char *colon = strrchr(host, ':');
	size_t len = colon && !strchr(colon, ']') ? (size_t)(colon - host) : strlen(host);

	return len > 0 && host[len - 1] == '.' ? len - 1 : len;
}

bool tls_peer_allows_host(const struct tls_peer *peer, const char *host)
{
	const char *name = peer ? atomic_load(&peer->server_name) : NULL;
	size_t len = name_len(host);

	return !name || (name_len(name) == len && strncasecmp(name, host, len) == 0);
}
