/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files/file_entry.h"

#include "api/text.h"
#include "base/clock.h"
#include "base/format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
	[AGENT_FILE_NONE] = "none",
	[AGENT_FILE_REGULAR] = "file",
	[AGENT_FILE_DIRECTORY] = "dir",
	[AGENT_FILE_SYMLINK] = "symlink",
	[AGENT_FILE_OTHER] = "other",
};

const char *file_entry_type(enum agent_file_kind kind)
{
	return type_names[kind];
}

json_t *file_entry_to_json(const char *path, const struct file_channel_answer *answer)
{
	const char *name = strrchr(path, '/');
	char modified_at[CLOCK_TEXT_LEN], mode[8];
	json_t *entry = json_object();

	name = name && name[1] ? name + 1 : path;
	clock_format(
		(int64_t)answer->file.mtime_ns / 1000000, modified_at); /* may lie before 1970 */
	snprintf(mode, sizeof(mode), "%04o", answer->file.mode & 07777);
	text_set(entry, "name", (const uint8_t *)name, strlen(name));
	text_set(entry, "path", (const uint8_t *)path, strlen(path));
	json_object_set_new(entry, "type", json_string(file_entry_type(answer->file.kind)));
	json_object_set_new(entry, "size", json_integer((json_int_t)answer->file.size));
	json_object_set_new(entry, "mode", json_string(mode));
	json_object_set_new(entry, "uid", json_integer(answer->file.uid));
	json_object_set_new(entry, "gid", json_integer(answer->file.gid));
	json_object_set_new(entry, "modified_at", json_string(modified_at));
	if (answer->file.kind == AGENT_FILE_SYMLINK)
		text_set(entry, "target", (const uint8_t *)answer->target, strlen(answer->target));
	else
		json_object_set_new(entry, "target", json_null());
	return entry;
}

void file_entry_tag(const struct agent_file_answer *file, char tag[FILE_ENTRY_TAG_LEN])
{
	snprintf(tag, FILE_ENTRY_TAG_LEN, "\"%llx-%llx-%llx\"", (unsigned long long)file->inode,
		(unsigned long long)file->mtime_ns, (unsigned long long)file->size);
}

/* As RFC 8187 has it; fits for a name of NAME_MAX bytes and a short suffix. */
static size_t escape(const char *name, char *text, size_t size)
{
	size_t len = 0;

	for (; *name && len + 4 <= size; name++) {
		if (isalnum((unsigned char)*name) || strchr("-._", *name))
			text[len++] = *name;
		else
			len = format_append(text, size, len, "%%%02X", (unsigned char)*name);
	}
	text[len] = '\0';
	return len;
}

void file_entry_disposition(
	const char *path, const char *suffix, char text[FILE_ENTRY_DISPOSITION_LEN])
{
	const char *name = strrchr(path, '/');
	size_t len;

	name = name ? name + 1 : path;
	len = format_append(text, FILE_ENTRY_DISPOSITION_LEN, 0, "attachment%s",
		name[0] ? "; filename*=UTF-8''" : "");
	if (!name[0])
		return; /* the root has none */
	len += escape(name, text + len, FILE_ENTRY_DISPOSITION_LEN - len);
	escape(suffix, text + len, FILE_ENTRY_DISPOSITION_LEN - len);
}

bool file_entry_tag_matches(const char *list, const char *tag)
{
	size_t len = strlen(tag);

	while (*list) {
		list += strspn(list, " \t,");
		if (*list == '*')
			return true;
		if (strncmp(list, "W/", 2) == 0)
			list += 2;
		if (strncmp(list, tag, len) == 0 && strchr(" \t,", list[len]))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}
