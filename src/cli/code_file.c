/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/code_file.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *code_file_language(const char *file)
{
	static const struct {
		const char *ending, *language;
	} endings[] = {{".py", "python"}, {".js", "javascript"}, {".mjs", "javascript"},
		{".cjs", "javascript"}, {".sh", "shell"}};
	const char *dot = strrchr(file, '.');

	for (size_t i = 0; dot && i < array_len(endings); i++) {
		if (strcmp(dot, endings[i].ending) == 0)
			return endings[i].language;
	}
	return NULL;
}

int code_file_read(const char *file, struct buf *code, struct err *err)
{
	auto_fd int fd =
		strcmp(file, "-") == 0 ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);
	char chunk[65536];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "open %s", file);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read %s", file);
		if (buf_append(code, chunk, (size_t)n) < 0)
			return err_explain(err, ERR_TOO_LARGE, NULL,
				"copy it in with \"sandlot cp\" and import it",
				"%s has more than 1 MiB", file);
	}
	return 0;
}

int code_file_add_event(json_t *body, const char *text, struct err *err)
{
	json_error_t where;
	json_t *event = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &where);

	if (!event)
		return err_explain(err, ERR_INVALID, NULL,
			"quote it: --event '{\"name\": \"value\"}'", "--event is not JSON: %s",
			where.text);
	json_object_set_new(body, "event", event);
	return 0;
}
