/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/output/shown_result.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/text/base64.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define IMAGE_MAX    (8u << 20)
#define NUMBER_MAX   100000u
#define EXIT_TIMEOUT 124

/* Images are saved by number: 1.png, 2.svg. */
static int open_next(struct shown_result *shown, const char *ending, char **ret_path)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (shown->keeps_files ? O_EXCL : O_TRUNC);
	int fd;

	do {
		free(*ret_path);
		*ret_path = mem_printf(
			"%s/%s%u.%s", shown->save, shown->prefix, ++shown->count, ending);
		fd = open(*ret_path, flags, 0644);
		if (fd < 0 && errno == ENOENT && mkdir(shown->save, 0755) == 0)
			fd = open(*ret_path, flags, 0644);
	} while (fd < 0 && errno == EEXIST && shown->count < NUMBER_MAX);
	return fd;
}

static bool save(struct shown_result *shown, const char *ending, const json_t *data, bool is_text)
{
	auto_(buf_fini) struct buf bytes = BUF_INIT(IMAGE_MAX);
	auto_free char *path = NULL;
	auto_fd int fd = -1;
	struct err err;

	if (is_text)
		buf_append(&bytes, json_string_value(data), json_string_length(data));
	else if (base64_decode(json_string_value(data), json_string_length(data), &bytes) < 0)
		return false;
	fd = open_next(shown, ending, &path);
	if (fd < 0 || bytes.failed || fd_write_full(fd, bytes.data, bytes.len) < 0) {
		err_sys(&err, "write %s", path);
		cli_complain(&err, NULL);
		return false;
	}
	cli_note("saved %s", path);
	return true;
}

static void show(struct shown_result *shown, const json_t *mime)
{
	static const struct {
		const char *type, *ending;
		bool is_text;
	} images[] = {{"image/png", "png", false}, {"image/jpeg", "jpeg", false},
		{"image/svg+xml", "svg", true}, {"application/pdf", "pdf", false}};
	const char *text = cli_text(mime, "text/plain");

	for (size_t i = 0; shown->save && i < array_len(images); i++) {
		const json_t *data = json_object_get(mime, images[i].type);

		if (json_is_string(data) && save(shown, images[i].ending, data, images[i].is_text))
			return;
	}
	if (text[0])
		cli_print("%s\n", text);
}

bool shown_result_take(void *arg, const char *name, const json_t *data)
{
	struct shown_result *shown = arg;
	const json_t *display = json_object_get(data, "display");
	auto_free char *text = NULL;

	if (strcmp(name, "error") == 0)
		return true; /* it comes again with the end */
	if (strcmp(name, "result") != 0)
		return false;
	if (display) {
		show(shown, display);
	} else if (!shown->has_shown && !shown->hides_value) {
		text = cli_dump_json(
			json_object_get(data, "result"), JSON_INDENT(2) | JSON_ENCODE_ANY);
		cli_print("%s\n", text);
	}
	shown->has_shown = display != NULL;
	fflush(stdout);
	return true;
}

void shown_result_report(const json_t *execution)
{
	const json_t *error = json_object_get(execution, "error");
	const json_t *artifact;
	size_t i;

	if (json_is_object(error) && cli_text(error, "traceback")[0])
		cli_tell(cli_text(error, "traceback"));
	else if (json_is_object(error))
		cli_note("%s: %s", cli_text(error, "type"), cli_text(error, "message"));
	json_array_foreach(json_object_get(execution, "artifacts"), i, artifact)
	{
		char size[FORMAT_SIZE_LEN];

		format_size((uint64_t)json_integer_value(json_object_get(artifact, "size")), size);
		cli_note("artifact: %s (%s)", cli_text(artifact, "path"), size);
	}
	/* Of a sandbox that is there they are files as any other. */
	if (i > 0 && !cli_text(execution, "sandbox_id")[0])
		cli_note("keep them with: sandlot execution get %s %s", cli_text(execution, "id"),
			cli_text(json_array_get(json_object_get(execution, "artifacts"), 0),
				"path"));
}

int shown_result_exit_code(const json_t *execution)
{
	const char *status = cli_text(execution, "status");

	if (strcmp(status, "succeeded") == 0)
		return 0;
	return strcmp(status, "timeout") == 0 ? EXIT_TIMEOUT : 1;
}
