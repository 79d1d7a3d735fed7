/* SPDX-License-Identifier: Apache-2.0 */
#include "http/headers.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Those whose values add up; any other that is repeated could be read in two ways. */
static const char *const list_names[] = {
	"Accept",
	"Accept-Charset",
	"Accept-Encoding",
	"Accept-Language",
	"Cache-Control",
	"Connection",
	"Cookie",
	"Forwarded",
	"If-Match",
	"If-None-Match",
	"Keep-Alive",
	"Pragma",
	"Sec-WebSocket-Extensions",
	"Sec-WebSocket-Protocol",
	"TE",
	"Upgrade",
	"Via",
	"X-Forwarded-For",
};

struct reader {
	struct arena *arena;
	struct headers headers;
	struct err *err;
	int result;
};

static bool is_list(const char *name)
{
	for (size_t i = 0; i < array_len(list_names); i++)
		if (strcasecmp(list_names[i], name) == 0)
			return true;
	return false;
}

static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", text[i]))
			return false;
	return len > 0;
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return true;
	return false;
}

static struct header *find(const struct headers *headers, const char *name)
{
	for (unsigned i = 0; i < headers->count; i++)
		if (strcasecmp(headers->list[i].name, name) == 0)
			return &headers->list[i];
	return NULL;
}

static int append(struct reader *reader, struct header *known, const char *value, size_t len)
{
	const char *glue = strcasecmp(known->name, "Cookie") == 0 ? "; " : ", ";
	size_t before = strlen(known->value);
	char *joined;

	if (!is_list(known->name))
		return err_set(
			reader->err, ERR_INVALID, "the header %.64s is given twice", known->name);
	joined = arena_alloc(reader->arena, before + 2 + len + 1);
	memcpy(joined, known->value, before);
	memcpy(joined + before, glue, 2);
	memcpy(joined + before + 2, value, len);
	joined[before + 2 + len] = '\0';
	known->value = joined;
	return 0;
}

static int add(
	struct reader *reader, const char *name, size_t name_len, const char *value, size_t len)
{
	struct headers *headers = &reader->headers;
	struct header *known;

	if (!is_token(name, name_len) || has_control(value, len))
		return err_set(reader->err, ERR_INVALID, "a header is malformed");
	/* The library compares Transfer-Encoding with its padding; a value that only we take for
	 * "chunked" would be a body with two ends. */
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t') &&
		strcasecmp(name, "Transfer-Encoding") != 0)
		len--;
	known = find(headers, name);
	if (known)
		return append(reader, known, value, len);
	if (headers->count == HEADERS_MAX)
		return err_explain(reader->err, ERR_TOO_LARGE, "too_many_headers", NULL,
			"more than %d headers", HEADERS_MAX);
	headers->list[headers->count++] = (struct header){
		.name = arena_strndup(reader->arena, name, name_len),
		.value = arena_strndup(reader->arena, value, len),
	};
	return 0;
}

static enum MHD_Result read_one(void *arg, enum MHD_ValueKind kind, const char *name,
	size_t name_len, const char *value, size_t len)
{
	struct reader *reader = arg;

	(void)kind;
	reader->result = add(reader, name, name_len, value ? value : "", value ? len : 0);
	return reader->result == 0 ? MHD_YES : MHD_NO;
}

int headers_read(struct MHD_Connection *connection, struct arena *arena,
	struct headers *ret_headers, struct err *err)
{
	struct reader reader = {.arena = arena, .err = err};
	int count = MHD_get_connection_values_n(connection, MHD_HEADER_KIND, NULL, NULL);
	size_t room = count < 0 ? 0 : count < HEADERS_MAX ? (size_t)count : HEADERS_MAX;

	reader.headers.list = arena_alloc(arena, room * sizeof(struct header));
	MHD_get_connection_values_n(connection, MHD_HEADER_KIND, read_one, &reader);
	/* What was read so far is kept on failure too: the answer wants the request id. */
	*ret_headers = reader.headers;
	return reader.result;
}

const char *headers_get(const struct headers *headers, const char *name)
{
	const struct header *header = find(headers, name);

	return header ? header->value : NULL;
}
