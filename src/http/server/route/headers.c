/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/route/headers.h"

#include "http/head_rules.h"

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
	const char *next; /* where the next one must begin in the library's buffer */
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

static struct header *find(const struct headers *headers, const char *name)
{
	for (unsigned i = 0; i < headers->count; i++)
		if (strcasecmp(headers->list[i].name, name) == 0)
			return &headers->list[i];
	return NULL;
}

static int append(
	struct header *known, struct arena *arena, const char *value, size_t len, struct err *err)
{
	const char *glue = strcasecmp(known->name, "Cookie") == 0 ? "; " : ", ";
	size_t before = strlen(known->value);
	char *joined;

	if (!is_list(known->name))
		return err_set(err, ERR_INVALID, "the header %.64s is given twice", known->name);
	joined = arena_alloc(arena, before + 2 + len + 1);
	memcpy(joined, known->value, before);
	memcpy(joined + before, glue, 2);
	memcpy(joined + before + 2, value, len);
	joined[before + 2 + len] = '\0';
	known->value = joined;
	return 0;
}

static int malformed(struct err *err)
{
	return err_set(err, ERR_INVALID, "a header is malformed");
}

int headers_add(
	struct headers *headers, struct arena *arena, const struct header *header, struct err *err)
{
	const char *name = header->name, *value = header->value;
	size_t len = strlen(value);
	struct header *known;

	if (!head_rules_is_name(name, strlen(name)) || !head_rules_is_value(value, len))
		return malformed(err);
	len = head_rules_value_len(name, strlen(name), value, len);
	known = find(headers, header->name);
	if (known)
		return append(known, arena, value, len, err);
	if (headers->count == HEADERS_MAX)
		return err_explain(err, ERR_TOO_LARGE, "too_many_headers", NULL,
			"more than %d headers", HEADERS_MAX);
	headers->list[headers->count++] = (struct header){
		.name = arena_strndup(arena, header->name, strlen(header->name)),
		.value = arena_strndup(arena, value, len),
	};
	return 0;
}

/* Both are ended by a NUL byte: the library has written it over what followed. */
static enum MHD_Result read_one(void *arg, enum MHD_ValueKind kind, const char *name,
	size_t name_len, const char *value, size_t len)
{
	struct reader *reader = arg;

	(void)kind;
	if (name != reader->next || name[name_len] != '\0' || value <= name + name_len ||
		value[len] != '\0')
		reader->result = malformed(reader->err);
	else
		reader->result = headers_add(&reader->headers, reader->arena,
			&(struct header){name, value}, reader->err);
	reader->next = value + len + 2;
	return reader->result == 0 ? MHD_YES : MHD_NO;
}

/* The library has seen that it is "HTTP/" and two digits. */
static bool is_known_version(const char *version)
{
	return strlen(version) == strlen("HTTP/1.1") &&
	       head_rules_is_version((unsigned)(version[5] - '0'), (unsigned)(version[7] - '0'));
}

int headers_read(struct MHD_Connection *connection, const struct request_line *line,
	struct arena *arena, struct headers *ret_headers, struct err *err)
{
	struct reader reader = {
		.arena = arena, .err = err, .next = line->version + strlen(line->version) + 2};
	const char *version = line->method + strlen(line->method) + 1 + strlen(line->target) + 1;
	const union MHD_ConnectionInfo *head =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	int count = MHD_get_connection_values_n(connection, MHD_HEADER_KIND, NULL, NULL);
	size_t room = count < 0 ? 0 : count < HEADERS_MAX ? (size_t)count : HEADERS_MAX;

	reader.headers.list = arena_alloc(arena, room * sizeof(struct header));
	MHD_get_connection_values_n(connection, MHD_HEADER_KIND, read_one, &reader);
	if (reader.result == 0 && !is_known_version(line->version))
		reader.result = err_set(err, ERR_INVALID, "HTTP/1.1 is spoken here");
	if (reader.result == 0 && (line->version != version || !head ||
					  reader.next + 2 != line->method + head->header_size))
		reader.result = err_set(err, ERR_INVALID, "the request's head is malformed");
	/* What was read so far is kept on failure too: the answer wants the request id. */
	*ret_headers = reader.headers;
	return reader.result;
}

const char *headers_get(const struct headers *headers, const char *name)
{
	const struct header *header = find(headers, name);

	return header ? header->value : NULL;
}
