/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/connection/client_hello.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = mem_new(size ? size : 1); /* so that a read past its end is seen */
	char name[EGRESS_NAME_MAX], again[EGRESS_NAME_MAX];
	int r;

	memcpy(copy, data, size);
	r = client_hello_read(copy, size, name);
	assert(r == 0 || r == 1 || r == -EAGAIN || r == -EBADMSG);
	assert(r != -EAGAIN || size < CLIENT_HELLO_MAX);
	if (r == 1)
		assert(egress_name_read(name, strlen(name), again) == 0);
	free(copy);
	return 0;
}
