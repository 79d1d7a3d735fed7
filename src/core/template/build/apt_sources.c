/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/apt_sources.h"

#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX  (256u << 10)
#define LINES_MAX 32
#define BLANKS	  " \t\r"
#define SAFE	  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/_+~%-"

bool apt_sources_is_suite(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= APT_SUITE_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && text[0] != '-';
}

/* The suite itself, and what Debian adds to it. */
static bool is_of_suite(const char *name, const char *suite)
{
	size_t len = strlen(suite);

	return strncmp(name, suite, len) == 0 &&
	       (!name[len] || strcmp(name + len, "-updates") == 0 ||
		       strcmp(name + len, "-security") == 0);
}

static bool is_address(const char *uri)
{
	return (strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0) &&
	       uri[strspn(uri, SAFE)] == '\0';
}

static void add_line(json_t *lines, const char *uri, const char *suite, const char *components)
{
	if (is_address(uri) && components[strspn(components, SAFE " ")] == '\0' && *components &&
		json_array_size(lines) < LINES_MAX)
		json_array_append_new(lines, json_sprintf("deb %s %s %s", uri, suite, components));
}

/* "deb [options] uri suite component..." */
static void read_line(char *line, const char *suite, json_t *lines)
{
	char *rest, *type = strtok_r(line, BLANKS, &rest), *uri, *name;

	if (!type || strcmp(type, "deb") != 0)
		return;
	rest += strspn(rest, BLANKS);
	if (*rest == '[') {
		rest = strchr(rest, ']');
		if (!rest)
			return;
		rest++;
	}
	uri = strtok_r(NULL, BLANKS, &rest);
	name = strtok_r(NULL, BLANKS, &rest);
	if (!uri || !name || !is_of_suite(name, suite))
		return;
	rest += strspn(rest, BLANKS);
	rest[strcspn(rest, "#\t\r")] = '\0';
	add_line(lines, uri, name, rest);
}

/* Some fields of one paragraph; each a text with words between blanks. */
struct paragraph {
	char *types, *uris, *suites, *components, *enabled;
};

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; at && *at; at += strcspn(at, BLANKS)) {
		at += strspn(at, BLANKS);
		if (strncmp(at, word, len) == 0 && strcspn(at, BLANKS) == len)
			return true;
	}
	return false;
}

static void end_paragraph(struct paragraph *paragraph, const char *suite, json_t *lines)
{
	char *rest_of_uris, *rest;
	bool is_on = !paragraph->enabled || strcmp(paragraph->enabled, "no") != 0;

	if (is_on && has_word(paragraph->types, "deb") && paragraph->uris && paragraph->suites &&
		paragraph->components) {
		for (char *uri = strtok_r(paragraph->uris, BLANKS, &rest_of_uris); uri;
			uri = strtok_r(NULL, BLANKS, &rest_of_uris)) {
			auto_free char *suites = mem_strdup(paragraph->suites);

			for (char *name = strtok_r(suites, BLANKS, &rest); name;
				name = strtok_r(NULL, BLANKS, &rest)) {
				if (is_of_suite(name, suite))
					add_line(lines, uri, name, paragraph->components);
			}
		}
	}
	*paragraph = (struct paragraph){0};
}

/* "Field: value"; a value may go on in lines that begin with a blank, of which only those of Signed-By do. */
static void read_field(char *line, struct paragraph *paragraph)
{
	const struct {
		const char *name;
		char **value;
	} fields[] = {{"Types", &paragraph->types}, {"URIs", &paragraph->uris},
		{"Suites", &paragraph->suites}, {"Components", &paragraph->components},
		{"Enabled", &paragraph->enabled}};
	char *colon = strchr(line, ':');

	if (!colon || line[0] == ' ' || line[0] == '\t')
		return;
	*colon++ = '\0';
	colon += strspn(colon, BLANKS);
	for (size_t i = strlen(colon); i > 0 && strchr(BLANKS, colon[i - 1]); i--)
		colon[i - 1] = '\0';
	for (size_t i = 0; i < array_len(fields); i++) {
		if (strcasecmp(fields[i].name, line) == 0)
			*fields[i].value = colon;
	}
}

void apt_sources_read(const char *text, bool is_deb822, const char *suite, json_t *lines)
{
	auto_free char *copy = mem_strdup(text);
	struct paragraph paragraph = {0};

	for (char *line = copy, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (line[0] == '#')
			continue;
		if (!is_deb822)
			read_line(line, suite, lines);
		else if (line[strspn(line, BLANKS)] == '\0')
			end_paragraph(&paragraph, suite, lines);
		else
			read_field(line, &paragraph);
	}
	end_paragraph(&paragraph, suite, lines);
}

static void read_file(int dir, const char *name, const char *suite, json_t *lines)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct buf content = BUF_INIT(FILE_MAX);
	const char *end = strrchr(name, '.');
	auto_free char *text = NULL;
	char piece[4096];
	ssize_t n = 0;

	while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0)
		buf_append(&content, piece, (size_t)n);
	if (fd >= 0 && n == 0 && !content.failed) {
		text = buf_take_str(&content);
		apt_sources_read(text, end && strcmp(end, ".sources") == 0, suite, lines);
	}
	buf_fini(&content);
}

static void read_parts(int dir, const char *suite, json_t *lines)
{
	int parts = openat(dir, "sources.list.d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = parts < 0 ? NULL : fdopendir(parts);
	const struct dirent *entry;

	if (!list) {
		fd_close(parts);
		return;
	}
	while ((entry = readdir(list))) {
		const char *end = strrchr(entry->d_name, '.');

		if (end && (strcmp(end, ".list") == 0 || strcmp(end, ".sources") == 0))
			read_file(dirfd(list), entry->d_name, suite, lines);
	}
	closedir(list);
}

json_t *apt_sources_of_host(const char *etc_apt, const char *suite)
{
	static const char *const own[][2] = {
		{"debian", ""}, {"debian", "-updates"}, {"debian-security", "-security"}};
	auto_fd int dir = open(etc_apt, O_PATH | O_DIRECTORY | O_CLOEXEC);
	json_t *lines = json_array();

	if (dir >= 0) {
		read_file(dir, "sources.list", suite, lines);
		read_parts(dir, suite, lines);
	}
	if (json_array_size(lines) > 0)
		return lines;
	for (size_t i = 0; i < array_len(own); i++)
		json_array_append_new(lines, json_sprintf("deb http://deb.debian.org/%s %s%s main",
						     own[i][0], suite, own[i][1]));
	return lines;
}
