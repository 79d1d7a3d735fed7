/* SPDX-License-Identifier: Apache-2.0 */
/* What a program wrote, as the pages of previews show it. */
#include "api/text.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(size + 1);

	text_put_plain(&out, data, size);
	assert(!out.failed && out.len <= size);
	assert(text_is_utf8(out.data, out.len));
	for (size_t i = 0; i < out.len; i++)
		assert(out.data[i] >= 0x20 || out.data[i] == '\n' || out.data[i] == '\t');
	buf_fini(&out);
	return 0;
}
