/* SPDX-License-Identifier: Apache-2.0 */
#include "http/message.h"

#include "http/head_rules.h"

#include <errno.h>
#include <http_parser.h>
#include <string.h>
#include <strings.h>

#define TRAILERS_MAX 8192

bool slice_is(struct slice slice, const char *text)
{
	return slice.len == strlen(text) && memcmp(slice.at, text, slice.len) == 0;
}

bool slice_is_like(struct slice slice, const char *text)
{
	return slice.len == strlen(text) && strncasecmp(slice.at, text, slice.len) == 0;
}

bool slice_begins(struct slice slice, const char *text)
{
	return slice.len >= strlen(text) && memcmp(slice.at, text, strlen(text)) == 0;
}

bool slice_has_word(struct slice list, const char *word)
{
	size_t at = 0;

	while (at < list.len) {
		size_t end = at;
		struct slice item;

		while (end < list.len && list.at[end] != ',')
			end++;
		item = (struct slice){list.at + at, end - at};
		while (item.len > 0 && (item.at[0] == ' ' || item.at[0] == '\t'))
			item = (struct slice){item.at + 1, item.len - 1};
		while (item.len > 0 && strchr(" \t", item.at[item.len - 1]))
			item.len--;
		if (slice_is_like(item, word))
			return true;
		at = end + 1;
	}
	return false;
}

/* --- the head, byte by byte --- */

/* One line behind the first: a name, a colon, a value. */
static bool is_field_line(const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name_len = colon ? (size_t)(colon - line) : 0;

	return head_rules_is_name(line, name_len) &&
	       head_rules_is_value(line + name_len, len - name_len);
}

/* The reason in the first line of an answer may have any spaces. */
static bool is_first_line(const struct message *message, const char *line, size_t len)
{
	if (message->kind == MESSAGE_REQUEST)
		return head_rules_is_request_line(line, len);
	return len > 0 && !memchr(line, '\t', len) && head_rules_is_value(line, len);
}

/*
 * The length of the head with the empty line behind it; 0 if it is not all there, or -errno. No line is read twice: one
 * who sends a long head byte by byte would have us read all of it for each.
 */
static ssize_t head_len(struct message *message, const uint8_t *data, size_t len)
{
	for (;;) {
		size_t at = message->checked, line;
		const uint8_t *feed = memchr(data + at, '\n', len - at);

		if (!feed)
			return len >= MESSAGE_HEAD_MAX ? -EMSGSIZE : 0;
		line = (size_t)(feed - data) - at;
		if (line == 0 || feed[-1] != '\r')
			return -EPROTO;
		line--;
		if (line == 0 && at > 0)
			return (ssize_t)(at + 2) > MESSAGE_HEAD_MAX ? -EMSGSIZE : (ssize_t)(at + 2);
		if (at == 0 ? !is_first_line(message, (const char *)data, line)
			    : !is_field_line((const char *)data + at, line))
			return -EPROTO;
		message->checked += line + 2;
	}
}

/* --- what the parser finds --- */

static int on_target(http_parser *parser, const char *at, size_t len)
{
	struct message *message = parser->data;

	message->target = (struct slice){at, len};
	return 0;
}

static int on_reason(http_parser *parser, const char *at, size_t len)
{
	((struct message *)parser->data)->reason = (struct slice){at, len};
	return 0;
}

/* --- trailers: as the head, but they may come in pieces --- */

static void end_trailer(struct message *message)
{
	if (message->in_trailer_value)
		buf_append_str(&message->trailers, "\r\n");
	message->in_trailer_value = false;
}

static int add_trailer_name(struct message *message, const char *at, size_t len)
{
	end_trailer(message);
	buf_append(&message->trailers, at, len);
	return message->trailers.failed;
}

static int add_trailer_value(struct message *message, const char *at, size_t len)
{
	if (!message->in_trailer_value)
		buf_append_str(&message->trailers, ": ");
	message->in_trailer_value = true;
	buf_append(&message->trailers, at, len);
	return message->trailers.failed;
}

/* None of them may change how a message is read, or who sent it. The parser is less strict with them than we are. */
static bool is_harmless_trailer(struct slice line)
{
	static const char *const refused[] = {"Content-", "Transfer-", "Proxy-", "X-Forwarded-",
		"Authorization:", "Connection:", "Cookie:", "Forwarded:", "Host:", "Keep-Alive:",
		"Location:", "Set-Cookie:", "TE:", "Trailer:", "Upgrade:", "X-API-Key:",
		"X-Real-IP:"};

	if (!is_field_line(line.at, line.len))
		return false;
	for (size_t i = 0; i < array_len(refused); i++) {
		size_t len = strlen(refused[i]);

		if (line.len >= len && strncasecmp(line.at, refused[i], len) == 0)
			return false;
	}
	return true;
}

/* Each has its end of line: on_end() has seen to that. */
static void put_trailers(struct message *message)
{
	const char *at = (const char *)message->trailers.data;
	size_t left = message->trailers.len;

	while (left > 0) {
		const char *feed = memchr(at, '\n', left);
		size_t len = (size_t)(feed - at) + 1;

		if (is_harmless_trailer((struct slice){at, len - strlen("\r\n")}))
			buf_append(message->out, at, len);
		at += len;
		left -= len;
	}
}

static int on_name(http_parser *parser, const char *at, size_t len)
{
	struct message *message = parser->data;

	if (message->has_head)
		return add_trailer_name(message, at, len);
	if (message->field_count == MESSAGE_FIELDS_MAX)
		return -1;
	message->fields[message->field_count++].name = (struct slice){at, len};
	return 0;
}

static int on_value(http_parser *parser, const char *at, size_t len)
{
	struct message *message = parser->data;
	struct message_field *field;
	size_t name_len;

	if (message->has_head)
		return add_trailer_value(message, at, len);
	field = &message->fields[message->field_count - 1];
	/* The rules are for requests: an answer's length is passed on without its padding. */
	name_len = message->kind == MESSAGE_REQUEST ? field->name.len : 0;
	len = head_rules_value_len(field->name.at, name_len, at, len);
	field->value = (struct slice){at, len};
	return 0;
}

/* The parser believes a length even here; a client does not, and would take such a body for the next answer. */
static bool is_without_body(const http_parser *parser)
{
	return parser->type == HTTP_RESPONSE &&
	       (parser->status_code / 100 == 1 || parser->status_code == 204 ||
		       parser->status_code == 304);
}

static int on_head(http_parser *parser)
{
	struct message *message = parser->data;

	message->has_head = true;
	http_parser_pause(parser, 1);
	return message->has_no_body || is_without_body(parser); /* 1: no body is read */
}

static int on_body(http_parser *parser, const char *at, size_t len)
{
	struct message *message = parser->data;

	if (message->in_chunks)
		buf_printf(message->out, "%zx\r\n", len);
	buf_append(message->out, at, len);
	if (message->in_chunks)
		buf_append_str(message->out, "\r\n");
	return message->out->failed;
}

static int on_end(http_parser *parser)
{
	struct message *message = parser->data;

	end_trailer(message);
	if (message->trailers.failed)
		return -1;
	message->is_complete = true;
	if (message->in_chunks) {
		buf_append_str(message->out, "0\r\n");
		put_trailers(message);
		buf_append_str(message->out, "\r\n");
	}
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings settings = {
	.on_url = on_target,
	.on_status = on_reason,
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_headers_complete = on_head,
	.on_body = on_body,
	.on_message_complete = on_end,
};

/* --- life --- */

void message_begin(struct message *message, enum message_kind kind)
{
	message_fini(message);
	*message = (struct message){.kind = kind,
		.parser = mem_new(sizeof(*message->parser)),
		.method = "",
		.trailers = BUF_INIT(TRAILERS_MAX)};
	http_parser_init(message->parser, kind == MESSAGE_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE);
	message->parser->data = message;
}

void message_fini(struct message *message)
{
	free(take_ptr(&message->parser));
	free(take_ptr(&message->head));
	free(take_ptr(&message->fields));
	message->field_count = 0;
	buf_fini(&message->trailers);
}

static ssize_t run(struct message *message, const void *data, size_t len)
{
	size_t n;

	http_parser_pause(message->parser, 0);
	n = http_parser_execute(message->parser, &settings, data, len);
	switch (HTTP_PARSER_ERRNO(message->parser)) {
	case HPE_OK:
	case HPE_PAUSED:
		return (ssize_t)n;
	default:
		return -EPROTO;
	}
}

/* What follows a value is a space or the end of its line, which nobody needs any more; an empty one is nowhere. */
static void terminate(struct message *message)
{
	char *head = message->head;

	if (message->target.at)
		head[message->target.at - head + (ptrdiff_t)message->target.len] = '\0';
	for (size_t i = 0; i < message->field_count; i++) {
		struct slice *value = &message->fields[i].value;

		if (value->len == 0)
			*value = (struct slice){"", 0};
		else
			head[value->at - head + (ptrdiff_t)value->len] = '\0';
	}
}

static void describe(struct message *message)
{
	const http_parser *parser = message->parser;

	if (message->kind == MESSAGE_REQUEST)
		message->method = http_method_str((enum http_method)parser->method);
	message->status = parser->status_code;
	message->version_major = parser->http_major;
	message->version_minor = parser->http_minor;
	message->is_chunked = parser->flags & F_CHUNKED;
	message->has_length = parser->flags & F_CONTENTLENGTH;
	message->length = parser->content_length;
	message->keeps_alive = http_should_keep_alive(parser);
}

/* The parser stands on the last byte of the head when it says that the head is complete. */
static ssize_t feed_head(struct message *message, const uint8_t *data, size_t len)
{
	ssize_t whole = head_len(message, data, len), n;

	if (whole <= 0)
		return whole;
	/* The parser looks at the first letter alone. */
	if (message->kind == MESSAGE_RESPONSE && memcmp(data, "HTTP/", strlen("HTTP/")) != 0)
		return -EPROTO;
	message->head = mem_new((size_t)whole + 1);
	message->fields = mem_new(MESSAGE_FIELDS_MAX * sizeof(*message->fields));
	memcpy(message->head, data, (size_t)whole);
	n = run(message, message->head, (size_t)whole);
	if (n < 0)
		return n;
	if (!message->has_head)
		return -EPROTO;
	if (n < whole && run(message, message->head + n, (size_t)(whole - n)) < 0)
		return -EPROTO;
	terminate(message);
	describe(message);
	return whole;
}

ssize_t message_feed(struct message *message, const uint8_t *data, size_t len)
{
	if (!message->has_head)
		return feed_head(message, data, len);
	return message->is_complete ? 0 : run(message, data, len);
}

bool message_end(struct message *message)
{
	if (message->has_head && !message->is_complete)
		(void)run(message, NULL, 0);
	return message->is_complete;
}

struct slice message_get(const struct message *message, const char *name)
{
	for (size_t i = message->field_count; i > 0; i--) {
		if (slice_is_like(message->fields[i - 1].name, name))
			return message->fields[i - 1].value;
	}
	return (struct slice){0};
}

size_t message_count(const struct message *message, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < message->field_count; i++)
		count += slice_is_like(message->fields[i].name, name);
	return count;
}

bool message_lists(const struct message *message, const char *name, const char *word)
{
	for (size_t i = 0; i < message->field_count; i++) {
		if (slice_is_like(message->fields[i].name, name) &&
			slice_has_word(message->fields[i].value, word))
			return true;
	}
	return false;
}

bool message_asks(const struct message *request, const char *method)
{
	return strcmp(request->method, method) == 0;
}

const char *message_reason(unsigned status)
{
	return http_status_str((enum http_status)status);
}

const char *message_framing_fault(const struct message *request)
{
	struct head_framing framing = {.is_old = request->version_minor == 0,
		.coding_count = (unsigned)message_count(request, "Transfer-Encoding"),
		.length_count = (unsigned)message_count(request, "Content-Length"),
		.coding = message_get(request, "Transfer-Encoding").at,
		.length = message_get(request, "Content-Length").at};

	return head_rules_framing_fault(&framing);
}
