/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter writes to the descriptor for results, which code in a sandbox can write too. Readers of lines take
 * it in whatever pieces it comes; what is made of it is a whole outcome, within its bounds, that can be read again.
 */
#include "base/clock.h"
#include "core/execution/done_line.h"
#include "core/execution/outcome.h"
#include "core/execution/result_reader.h"
#include "core/output/output_segment.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/sandlot-fuzz-XXXXXX";
static int dir = -1;

static void remove_dir(void)
{
	output_segment_remove_all(dir, 1);
	rmdir(path);
}

static void open_dir(void)
{
	if (!mkdtemp(path) || atexit(remove_dir) != 0)
		abort();
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

struct seen {
	size_t count, bytes;
};

static void take(void *arg, const char *kind, json_t *value, size_t len)
{
	struct seen *seen = arg;

	assert(kind && value && len > 0);
	seen->count++;
	seen->bytes += len;
}

/* In pieces of that size; what is found must not depend on it. */
static struct seen read_lines(
	const uint8_t *data, size_t size, size_t piece, const char *marker, unsigned *ret_bad)
{
	struct result_reader reader;
	struct seen seen = {0};

	result_reader_init(&reader, take, &seen);
	reader.marker = marker;
	for (size_t at = 0; at < size; at += piece)
		result_reader_put(&reader, data + at, size - at < piece ? size - at : piece);
	*ret_bad = reader.bad;
	result_reader_fini(&reader);
	assert(seen.bytes <= size);
	return seen;
}

static void compare_pieces(const uint8_t *data, size_t size, const char *marker)
{
	unsigned bad, bad_in_pieces;
	struct seen whole = read_lines(data, size, size ? size : 1, marker, &bad);
	struct seen pieces = read_lines(data, size, 3, marker, &bad_in_pieces);

	assert(whole.count == pieces.count && whole.bytes == pieces.bytes && bad == bad_in_pieces);
}

static bool is_done(const uint8_t *data, size_t size, size_t piece, const char *id)
{
	struct done_line line;
	bool found = false;

	done_line_init(&line, id);
	for (size_t at = 0; at < size && !found; at += piece)
		found = done_line_put(&line, data + at, size - at < piece ? size - at : piece);
	assert(line.len <= DONE_LINE_MAX);
	return found;
}

/* Of the same bytes as output and as results. */
static void gather(const uint8_t *data, size_t size, const char *language, const char *context)
{
	struct execution_record record = {.timeout_ms = 5, .has_handler = size % 2};
	struct process_end end = {.how.reason = END_EXITED};
	struct outcome_input input = {.record = &record,
		.language = language_find(language),
		.end = &end,
		.artifacts = json_array()};
	enum execution_status status;
	struct err err;
	json_t *outcome, *again;
	char *text;

	memcpy(record.context_id, context, strlen(context));
	memcpy(record.id, context, strlen(context));
	assert(output_log_open(dir, 1, OUTPUT_LOG_MIN_BYTES, &input.log, &err) == 0);
	output_log_append(input.log, 1, clock_wall_ms(), data, size / 2);
	output_log_append(input.log, 3, clock_wall_ms(), data, size);
	input.to = output_log_end(input.log);
	outcome = outcome_make(&input, &status);
	assert(status != EXECUTION_RUNNING);
	assert((status == EXECUTION_SUCCEEDED) == json_is_null(json_object_get(outcome, "error")));
	assert(status == EXECUTION_SUCCEEDED || json_is_null(json_object_get(outcome, "result")));
	text = json_dumps(outcome, JSON_COMPACT);
	assert(text);
	again = json_loads(text, JSON_ALLOW_NUL, NULL);
	assert(again);
	free(text);
	json_decref(again);
	json_decref(outcome);
	output_log_unref(input.log);
	output_segment_remove_all(dir, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char id[] = "01m7r99ym6bbn2zh5rdywdb60k";
	static const char *const markers[] = {"", id};

	if (dir < 0)
		open_dir();
	for (size_t i = 0; i < array_len(markers); i++) {
		compare_pieces(data, size, markers[i][0] ? markers[i] : NULL);
		assert(is_done(data, size, size ? size : 1, markers[i]) ==
			is_done(data, size, 3, markers[i]));
		gather(data, size, "python", markers[i]);
	}
	gather(data, size, "shell", "");
	return 0;
}
