/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/note.h"

#include "base/data_dir.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "ADDRESS:PORT", or with TLS "https://ADDRESS:PORT KEY". */
int note_read(const char *path, struct note *ret_note)
{
	char line[NOTE_LINE_MAX], *key = line, *address;
	ssize_t n = fd_read_file(AT_FDCWD, path, line, sizeof(line));

	if (n <= 0)
		return (int)n;
	line[strcspn(line, "\n")] = '\0';
	address = strsep(&key, " ");
	snprintf(ret_note->path, sizeof(ret_note->path), "%s", path);
	snprintf(ret_note->url, sizeof(ret_note->url), "%s%s",
		strstr(address, "://") ? "" : "http://", address);
	snprintf(ret_note->pin, sizeof(ret_note->pin), "%s", key ? key : "");
	return 1;
}

static int read_in(const char *data_dir, struct note *ret_note)
{
	auto_free char *path = mem_printf("%s/run/api.addr", data_dir);

	return note_read(path, ret_note);
}

int note_find(struct note *ret_note)
{
	const char *named = getenv("SANDLOT_DATA_DIR");
	auto_free char *own = geteuid() == 0 ? NULL : data_dir_of_user();
	int r, shared;

	if (named && named[0])
		return read_in(named, ret_note);
	r = own ? read_in(own, ret_note) : -ENOENT;
	if (r == 1)
		return r;
	shared = read_in(DATA_DIR_OF_ROOT, ret_note);
	return shared < 0 ? r : shared;
}
