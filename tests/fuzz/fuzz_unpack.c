/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of a stranger: whatever it is, only harmless items reach the sandbox. */
#include "core/files/paths.h"
#include "core/files/tar_reader.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MAX (1u << 20)

struct input {
	const uint8_t *data;
	size_t len;
};

/* In small pieces, so that what is cut between two of them is met too. */
static ssize_t read_input(void *arg, void *data, size_t size)
{
	struct input *input = arg;
	size_t n = input->len < 700 ? input->len : 700;

	if (n > size)
		n = size;
	if (n > 0)
		memcpy(data, input->data, n);
	input->data += n;
	input->len -= n;
	return (ssize_t)n;
}

static void check_name(const char *name)
{
	assert(name[0] && name[0] != '/');
	while (*name) {
		size_t part = strcspn(name, "/");

		assert(part > 0 && part <= NAME_MAX);
		assert(!(part == 1 && name[0] == '.'));
		assert(!(part == 2 && name[0] == '.' && name[1] == '.'));
		name += part + (name[part] == '/');
	}
}

/* Reads what the helper would read. */
static void check_items(const uint8_t *data, size_t size, const struct tar_reader_result *result)
{
	struct unpack in = UNPACK_INIT(data, size);
	uint64_t entries = 0, bytes = 0;

	for (;;) {
		auto_free char *name = NULL, *target = NULL;
		uint8_t kind = unpack_u8(&in);
		uint32_t mode = unpack_u32(&in);
		uint64_t length;

		unpack_u64(&in); /* uid, gid */
		unpack_u64(&in); /* mtime */
		length = unpack_u64(&in);
		name = unpack_str(&in, AGENT_PATH_MAX);
		target = unpack_str(&in, AGENT_PATH_MAX);
		assert(!in.bad && mode <= 0777);
		if (kind == AGENT_ITEM_END)
			break;
		assert(kind <= AGENT_ITEM_HARDLINK);
		check_name(name);
		if (kind == AGENT_ITEM_HARDLINK)
			check_name(target);
		assert(kind != AGENT_ITEM_SYMLINK || target[0]);
		assert(kind == AGENT_ITEM_FILE || length == 0);
		for (uint64_t i = 0; i < length; i++)
			unpack_u8(&in);
		assert(!in.bad);
		entries++;
		bytes += length;
	}
	assert(unpack_done(&in));
	assert(entries == result->entries && bytes == result->bytes && bytes <= BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const struct tar_reader_source source = {read_input, &input};
	struct tar_reader_result result;
	struct err err = {0};
	int items = memfd_create("items", MFD_CLOEXEC);
	int r = tar_reader_run(&source, items, BYTES_MAX, &result, &err);

	assert(!result.is_broken);
	if (r < 0) {
		assert((err.kind == ERR_INVALID || err.kind == ERR_TOO_LARGE) && err.message[0]);
	} else {
		size_t len = (size_t)lseek(items, 0, SEEK_CUR);
		uint8_t *written = mem_new(len);

		assert(pread(items, written, len, 0) == (ssize_t)len);
		check_items(written, len, &result);
		free(written);
	}
	close(items);
	return 0;
}
