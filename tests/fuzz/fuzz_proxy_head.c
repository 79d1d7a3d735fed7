/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to the proxy: whatever is accepted must read the same once it is rewritten. */
#include "egress/connection/proxy_head.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(2 * MESSAGE_HEAD_MAX);
	struct message request = {0};
	struct proxy_head head;

	message_begin(&request, MESSAGE_REQUEST);
	if (message_feed(&request, data, size) > 0 && proxy_head_read(&request, &head) == 0) {
		assert(head.at.port > 0);
		if (!head.is_connect) {
			proxy_head_write(&request, &head, &out);
			assert(!out.failed && out.len > 4);
			assert(memcmp(out.data + out.len - 4, "\r\n\r\n", 4) == 0);
			assert(!memmem(out.data, out.len - 1, "\r\n\r\n", 4));
		}
	}
	message_fini(&request);
	buf_fini(&out);
	return 0;
}
