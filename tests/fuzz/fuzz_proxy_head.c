/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to the proxy: whatever is accepted must read the same once it is rewritten. */
#include "egress/proxy_head.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = mem_new(size ? size : 1); /* so that a read past its end is seen */
	struct buf out = BUF_INIT(2 * PROXY_HEAD_MAX);
	struct proxy_head head;

	memcpy(copy, data, size);
	if (size < PROXY_HEAD_MAX && proxy_head_read(copy, size, &head) == 1) {
		assert(head.len <= size && head.port > 0);
		assert(head.is_address || head.name[0]);
		if (!head.is_connect) {
			proxy_head_write(copy, &head, &out);
			assert(!out.failed && out.len > 4);
			assert(memcmp(out.data + out.len - 4, "\r\n\r\n", 4) == 0);
			assert(!memmem(out.data, out.len - 1, "\r\n\r\n", 4));
		}
	}
	buf_fini(&out);
	free(copy);
	return 0;
}
