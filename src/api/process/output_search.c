/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches what the processes of a sandbox have printed, as far as it is kept: lines that have a text, of all processes or
 * of one. It reads so many bytes at most, the oldest process first, and says if that was not all. It wakes nothing.
 */
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/text.h"
#include "core/output/output_cursor.h"
#include "core/process/process_table.h"

#include <ctype.h>
#include <stdio.h>

#define QUERY_MAX     256	    /* bytes of the text */
#define LINE_MAX_LEN  4096	    /* a longer line is looked at in parts */
#define SHOWN_MAX     512	    /* bytes of a line that are shown */
#define SCAN_MAX      (64ull << 20) /* bytes read for one search */
#define READ_SIZE     (64u << 10)
#define LIMIT_MAX     1000
#define LIMIT_DEFAULT 100

/* A line that is being put together. */
struct line {
	char text[LINE_MAX_LEN];
	size_t len;
	uint64_t offset; /* of its first byte */
	int64_t at_ms;
};

struct search {
	struct list_page page;
	const char *query;
	size_t query_len;
	bool ignores_case;
	uint64_t scanned;
	bool is_cut; /* there is more than was looked at */
	char process[PROCESS_NAME_MAX];
	struct line lines[2]; /* of stdout and stderr */
};

static bool is_here(const struct search *search, const char *at)
{
	if (!search->ignores_case)
		return memcmp(at, search->query, search->query_len) == 0;
	return strncasecmp(at, search->query, search->query_len) == 0;
}

/* Where the text is in a line; -1 if it is not. */
static ssize_t find(const struct search *search, const struct line *line)
{
	for (size_t i = 0; i + search->query_len <= line->len; i++) {
		if (is_here(search, line->text + i))
			return (ssize_t)i;
	}
	return -1;
}

/* The part of a line that is shown: from a little before the text on. */
static json_t *show(const struct line *line, size_t at)
{
	auto_(buf_fini) struct buf plain = BUF_INIT(SHOWN_MAX * 4);
	size_t from = at > SHOWN_MAX / 4 ? at - SHOWN_MAX / 4 : 0;
	size_t len = line->len - from < SHOWN_MAX ? line->len - from : SHOWN_MAX;

	/* Not in the middle of a character. */
	while (from > 0 && ((uint8_t)line->text[from] & 0xc0) == 0x80 && len > 0)
		from++, len--;
	text_put_plain(&plain, (const uint8_t *)line->text + from, len);
	return json_stringn((const char *)plain.data, plain.len);
}

/* A line is whole. False if the page is full. */
static bool judge(struct search *search, struct line *line, bool is_stderr)
{
	ssize_t at = find(search, line);
	bool goes_on = true;

	if (at >= 0) {
		json_t *shown = show(line, (size_t)at);

		goes_on = list_page_add(&search->page,
			json_pack("{s:s, s:s, s:o, s:I, s:o}", "process", search->process, "stream",
				is_stderr ? "stderr" : "stdout", "at",
				api_time_to_json(line->at_ms), "offset", (json_int_t)line->offset,
				"line", shown ? shown : json_string("")));
	}
	line->len = 0;
	return goes_on;
}

static bool take(struct search *search, const struct output_piece *piece, const char *data)
{
	bool is_stderr = piece->kind == OUTPUT_STDERR;
	struct line *line = &search->lines[is_stderr];
	size_t len = (size_t)(piece->next - piece->offset);

	for (size_t i = 0; i < len; i++) {
		if (line->len == 0) {
			line->offset = piece->offset + i;
			line->at_ms = piece->at_ms;
		}
		if (data[i] != '\n')
			line->text[line->len++] = data[i];
		if ((data[i] == '\n' || line->len == LINE_MAX_LEN) &&
			!judge(search, line, is_stderr))
			return false;
	}
	return true;
}

/* All that is kept of one process. False if nothing more is to be looked at. */
static bool scan(struct search *search, struct output_log *log)
{
	auto_free char *data = mem_new(READ_SIZE);
	struct output_cursor *cursor = output_cursor_new(log, 0);
	struct output_piece piece = {.kind = OUTPUT_CUT};
	bool goes_on = true;

	while (goes_on) {
		output_cursor_read(cursor, data, READ_SIZE, &piece);
		if (piece.kind == OUTPUT_NONE)
			break;
		if (piece.kind == OUTPUT_CUT || piece.kind == OUTPUT_RESULT)
			continue;
		search->scanned += piece.next - piece.offset;
		goes_on = take(search, &piece, data) && search->scanned < SCAN_MAX;
	}
	for (unsigned i = 0; i < array_len(search->lines); i++) {
		if (search->lines[i].len > 0 && goes_on)
			goes_on = judge(search, &search->lines[i], i == 1);
		search->lines[i].len = 0;
	}
	output_cursor_free(cursor);
	return goes_on;
}

struct numbers {
	uint32_t *all;
	size_t count, cap;
	uint32_t only; /* 0: all */
};

static bool note_number(const struct process_record *record, void *arg)
{
	struct numbers *numbers = arg;

	if (numbers->only && record->number != numbers->only)
		return true;
	if (numbers->count == numbers->cap)
		return false;
	numbers->all[numbers->count++] = record->number;
	return true;
}

static int search_all(
	struct search *search, struct sandbox *sandbox, uint32_t only, struct err *err)
{
	enum { PROCESSES_MAX = 10000 };
	auto_free uint32_t *all = mem_new(PROCESSES_MAX * sizeof(*all));
	struct numbers numbers = {.all = all, .cap = PROCESSES_MAX, .only = only};
	int r = process_table_list(sandbox, 0, note_number, &numbers, err);

	for (size_t i = 0; i < numbers.count && r == 0 && !search->is_cut; i++) {
		struct output_log *log = NULL;
		struct err ignored;

		/* Of one that is forgotten meanwhile there is nothing to be found. */
		if (process_table_open_log(sandbox, all[i], &log, &ignored) < 0)
			continue;
		process_name_format(all[i], search->process);
		search->is_cut = !scan(search, log);
		output_log_unref(log);
	}
	return r;
}

HANDLER(output_search)
{
	auto_free struct search *search = mem_new(sizeof(*search));
	const char *process = request_query(req, "process");
	struct sandbox *sandbox;
	uint64_t limit;
	uint32_t only = process ? process_name_parse(process) : 0;
	int r = api_sandbox(req, context, &sandbox, err);

	search->query = request_query(req, "q");
	search->query_len = search->query ? strlen(search->query) : 0;
	if (r == 0 && (search->query_len == 0 || search->query_len > QUERY_MAX ||
			      strchr(search->query, '\n')))
		r = err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter q must be a text of 1 to %d bytes, of one line", QUERY_MAX);
	if (r == 0 && process && !only)
		r = process_not_found(process, err);
	if (r == 0)
		r = api_query_number(req, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT, &limit, err);
	if (r == 0 && request_query(req, "ignore_case"))
		r = api_query_boolean(req, "ignore_case", &search->ignores_case, err);
	if (r < 0)
		return r;
	list_page_init(&search->page, limit);
	r = search_all(search, sandbox, only, err);
	if (r == 0)
		request_answer_json(req, 200,
			json_pack("{s:O, s:I, s:b}", "matches", search->page.items, "scanned_bytes",
				(json_int_t)search->scanned, "truncated", search->is_cut));
	list_page_fini(&search->page);
	return r;
}
