/* SPDX-License-Identifier: Apache-2.0 */
/* Old output of a terminal, in pieces of any size. */
#include "api/process/replay_filter.h"
#include "base/mem.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void filter(const uint8_t *data, size_t size, size_t piece, uint8_t *out)
{
	struct replay_filter state = {0};
	size_t done = 0;

	for (size_t at = 0; at < size; at += piece) {
		done += replay_filter_run(
			&state, data + at, size - at < piece ? size - at : piece, out + done);
		assert(done + REPLAY_FILTER_HELD_MAX >= at);
	}
	done += replay_filter_finish(&state, out + done);
	assert(done == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *whole = mem_new(size + REPLAY_FILTER_HELD_MAX);
	uint8_t *again = mem_new(size + REPLAY_FILTER_HELD_MAX);

	filter(data, size, size ? size : 1, whole);
	for (size_t i = 0; i < size; i++)
		assert(whole[i] == data[i] || whole[i] == 0);
	/* However it is cut, the same comes out. */
	filter(data, size, 1, again);
	assert(memcmp(whole, again, size) == 0);
	filter(data, size, 1 + size % 7, again);
	assert(memcmp(whole, again, size) == 0);
	free(whole);
	free(again);
	return 0;
}
