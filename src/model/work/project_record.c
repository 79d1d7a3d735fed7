/* SPDX-License-Identifier: Apache-2.0 */
#include "model/work/project_record.h"

#include "base/format.h"

#include <string.h>

void project_record_init(struct project_record *record)
{
	*record = (struct project_record){.labels = json_object(), .defaults = json_object()};
}

void project_record_fini(struct project_record *record)
{
	json_decref(record->labels);
	json_decref(record->defaults);
	record->labels = record->defaults = NULL;
}

bool project_name_is_valid(const char *name)
{
	return model_name_is_valid(name) && !id_is_valid(name);
}

/* Reads one character of UTF-8: how many bytes it has; 0 if it is none. */
static size_t read_character(const unsigned char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = text[0] < 0x80		? 1
		     : (text[0] & 0xe0) == 0xc0 ? 2
		     : (text[0] & 0xf0) == 0xe0 ? 3
		     : (text[0] & 0xf8) == 0xf0 ? 4
						: 0;
	uint32_t code = len == 1 ? text[0] : text[0] & (0xffu >> (len + 1));

	for (size_t i = 1; i < len; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (len == 0 || code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return len;
}

/* Also those that turn the direction of a text, so that a name looks like another. */
static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

static const char *character_problem(const char *path)
{
	while (*path) {
		uint32_t code = 0;
		size_t len = read_character((const unsigned char *)path, &code);

		if (len == 0)
			return "must be UTF-8";
		if (is_control(code))
			return "must not have control characters";
		if (code == '\\')
			return "must not have backslashes";
		path += len;
	}
	return NULL;
}

const char *project_path_problem(const char *path)
{
	unsigned depth = 0;

	if (!path[0])
		return "must not be empty";
	if (path[0] == '/')
		return "must be relative";
	if (strlen(path) >= PROJECT_PATH_MAX)
		return "has at most 1023 bytes";
	for (const char *part = path;; part++) {
		size_t len = strcspn(part, "/");

		if (len == 0)
			return "must not have empty parts";
		if (len > PROJECT_NAME_MAX)
			return "has parts of at most 255 bytes";
		if ((len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
			return "must not have the parts . and ..";
		if (++depth > PROJECT_DEPTH_MAX)
			return "has at most 32 parts";
		part += len;
		if (!*part)
			break;
	}
	return character_problem(path);
}

bool project_path_number(const char *path, unsigned number, char ret_path[PROJECT_PATH_MAX])
{
	const char *name = strrchr(path, '/'), *ending;
	size_t len;

	name = name ? name + 1 : path;
	ending = strrchr(name, '.');
	/* What begins with its only dot has no ending. */
	if (!ending || ending == name)
		ending = name + strlen(name);
	len = format_append(ret_path, PROJECT_PATH_MAX, 0, "%.*s (%u)%s", (int)(ending - path),
		path, number, ending);
	/* What just fits may have been cut. */
	return len < PROJECT_PATH_MAX - 1 && !project_path_problem(ret_path);
}

int project_not_found(const char *text, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "project_not_found",
		"list the projects that there are", "there is no project %.64s", text);
}

int project_file_not_found(const char *text, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "file_not_found", "list the files of the project",
		"the project has no file %.128s", text);
}
