/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/code_file.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/text/base64.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *code_file_language(const char *file)
{
	static const struct {
		const char *ending, *language;
	} endings[] = {{".py", "python"}, {".js", "javascript"}, {".mjs", "javascript"},
		{".cjs", "javascript"}, {".ts", "typescript"}, {".mts", "typescript"},
		{".java", "java"}, {".sh", "shell"}};
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
		return cli_file_error(errno, "open", file, err);
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

static void put(json_t *body, const char *member, const char *path, json_t *text)
{
	if (!json_object_get(body, member))
		json_object_set_new(body, member, json_object());
	json_object_set_new(json_object_get(body, member), path, text);
}

int code_file_add_file(json_t *body, const char *text, struct err *err)
{
	const char *colon = strrchr(text, ':'), *slash = strrchr(text, '/');
	auto_free char *file = mem_strdup(text);
	const char *path = colon ? colon + 1 : slash ? slash + 1 : text;
	auto_(buf_fini) struct buf bytes = BUF_INIT(CODE_FILE_MAX);
	auto_(buf_fini) struct buf encoded = BUF_INIT(2 * CODE_FILE_MAX);
	json_t *value;
	int r;

	if (colon)
		file[colon - text] = '\0';
	if (!file[0] || !path[0])
		return err_explain(err, ERR_INVALID, NULL, "--file data.csv:/workspace/data.csv",
			"--file %s must name a file, and may name its path in the sandbox", text);
	r = code_file_read(file, &bytes, err);
	if (r < 0)
		return r;
	/* Nothing that has a NUL or is not UTF-8 is text in JSON. */
	value = bytes.len && memchr(bytes.data, '\0', bytes.len)
			? NULL
			: json_stringn((const char *)bytes.data, bytes.len);
	if (value) {
		put(body, "files", path, value);
		return 0;
	}
	if (base64_encode(bytes.data, bytes.len, &encoded) < 0)
		return err_set(err, ERR_TOO_LARGE, "%s has more than 1 MiB", file);
	put(body, "files_base64", path, json_stringn((const char *)encoded.data, encoded.len));
	return 0;
}

int code_file_add_event(json_t *body, const char *text, struct err *err)
{
	auto_(buf_fini) struct buf file = BUF_INIT(CODE_FILE_MAX);
	json_error_t where;
	json_t *event;
	int r = text[0] == '@' ? code_file_read(text + 1, &file, err) : buf_append_str(&file, text);

	if (r < 0)
		return r == -EMSGSIZE && text[0] != '@'
			       ? err_set(err, ERR_TOO_LARGE, "--event has more than 1 MiB")
			       : r;
	event = json_loadb(file.data ? (const char *)file.data : "", file.len,
		JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &where);
	if (!event)
		return err_explain(err, ERR_INVALID, NULL,
			"quote it: --event '{\"name\": \"value\"}', or name a file: --event "
			"@event.json",
			"--event is not JSON: %s", where.text);
	json_object_set_new(body, "event", event);
	return 0;
}
