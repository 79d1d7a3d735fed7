/* SPDX-License-Identifier: Apache-2.0 */
/* Range and the lists of If-Match: eight bytes are the file's size, the rest is the header. */
#include "api/files/file_entry.h"
#include "api/files/range.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_range(const char *header, uint64_t file_size)
{
	struct range range = {0};
	struct err err = {0};

	if (range_read(header, file_size, &range, &err) < 0) {
		assert(err.kind == ERR_RANGE);
		return;
	}
	if (!range.partial) {
		assert(range.offset == 0 && range.length == file_size);
		return;
	}
	assert(range.length > 0 && range.offset < file_size);
	assert(range.length <= file_size - range.offset);
}

static void check_tags(const char *list, uint64_t file_size)
{
	struct agent_file_answer file = {.inode = 1, .mtime_ns = 2, .size = file_size};
	char tag[FILE_ENTRY_TAG_LEN];

	file_entry_tag(&file, tag);
	assert(file_entry_tag_matches(tag, tag));
	if (file_entry_tag_matches(list, tag))
		assert(strchr(list, '*') || strstr(list, tag));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t file_size = 0;
	char *text;

	if (size < sizeof(file_size))
		return 0;
	memcpy(&file_size, data, sizeof(file_size));
	size -= sizeof(file_size);
	text = mem_new(size + 1);
	memcpy(text, data + sizeof(file_size), size);
	check_range(text, file_size);
	check_tags(text, file_size);
	free(text);
	return 0;
}
