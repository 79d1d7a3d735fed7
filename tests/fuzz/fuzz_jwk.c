/* SPDX-License-Identifier: Apache-2.0 */
/* The file with an issuer's keys. */
#include "auth/jwk.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jwk_set *set = NULL;
	struct err err = {0};

	if (jwk_set_parse((const char *)data, size, &set, &err) < 0) {
		assert(!set && err.kind == ERR_INVALID && err.message[0]);
		return 0;
	}
	/* A key that was taken can be used, and signs nothing by itself. */
	if (jwk_set_find(set, NULL))
		assert(!jwk_verify(jwk_set_find(set, NULL), "x", 1, (const uint8_t *)"y", 1));
	jwk_set_free(set);
	return 0;
}
