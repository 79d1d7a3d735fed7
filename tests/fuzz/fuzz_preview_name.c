/* SPDX-License-Identifier: Apache-2.0 */
/* The host of a request: what names a preview names it in one of two ways only. */
#include "base/mem.h"
#include "model/sandbox/preview_name.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DOMAIN "preview.localhost"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *host = mem_new(size + 1), id[ID_LEN + 1], one[128], other[128];
	uint16_t port;

	if (size > 0)
		memcpy(host, data, size);
	if (preview_name_parse(host, DOMAIN, id, &port) == 0) {
		char *colon = strchr(host, ':');

		assert(port > 0 && id_is_valid(id));
		if (colon)
			*colon = '\0';
		preview_name_format(id, port, DOMAIN, one, sizeof(one));
		snprintf(other, sizeof(other), "%u-%s." DOMAIN, port, id);
		assert(strcasecmp(host, one) == 0 || strcasecmp(host, other) == 0);
	}
	free(host);
	return 0;
}
