/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/dossier.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

struct dossier *dossier_new(void)
{
	struct dossier *dossier = mem_new(sizeof(*dossier));

	atomic_init(&dossier->refs, 2);
	return dossier;
}

void dossier_unref(struct dossier *dossier)
{
	if (!dossier || atomic_fetch_sub(&dossier->refs, 1) != 1)
		return;
	free(atomic_load(&dossier->server_name));
	free(dossier);
}

void dossier_set_server_name(struct dossier *dossier, const char *name)
{
	atomic_store(&dossier->server_name, mem_strdup(name));
}

/* Without the port, which is no colon within the brackets of an IPv6 address, and the dot at the end. */
static size_t name_len(const char *host)
{
	const char *colon = strrchr(host, ':');
	size_t len = colon && !strchr(colon, ']') ? (size_t)(colon - host) : strlen(host);

	return len > 0 && host[len - 1] == '.' ? len - 1 : len;
}

bool dossier_allows_host(const struct dossier *dossier, const char *host)
{
	const char *name = dossier ? atomic_load(&dossier->server_name) : NULL;
	size_t len = name_len(host);

	return !name || (name_len(name) == len && strncasecmp(name, host, len) == 0);
}
