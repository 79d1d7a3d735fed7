/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a helper in a sandbox says on its channel: the first byte chooses between the items of a tree that is
 * packed, and a listing of names and answers.
 */
#include "api/files/file_entry.h"
#include "api/files/tar_writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_items(int channel)
{
	int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int r = tar_writer_run(channel, out);

	assert(r == 0 || r == -ENODATA || r == -EPROTO);
	close(out);
}

static void check_listing(int channel)
{
	char name[AGENT_PATH_MAX];

	while (file_channel_read_path(channel, name) == 0) {
		struct file_channel_answer answer;
		struct err err = {0};
		json_t *entry;

		assert(strlen(name) < AGENT_PATH_MAX && !strstr(name, "//") && name[0] != '/');
		if (file_channel_read_answer(channel, name, &answer, &err) < 0) {
			assert(err.kind != ERR_NONE && err.message[0]);
			break;
		}
		entry = file_entry_to_json(name, &answer);
		assert(json_integer_value(json_object_get(entry, "size")) >= 0);
		assert(json_is_string(json_object_get(entry, "type")));
		json_decref(entry);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int channel;

	if (size == 0)
		return 0;
	channel = memfd_create("channel", MFD_CLOEXEC);
	assert(pwrite(channel, data + 1, size - 1, 0) == (ssize_t)(size - 1));
	if (data[0] & 1)
		check_listing(channel);
	else
		check_items(channel);
	close(channel);
	return 0;
}
