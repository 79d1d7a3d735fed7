/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX 1024

static struct {
	const char *program;
	enum log_level least;
	bool plain;
} logger = {.program = "sandlot", .least = LOG_INFO};

/* Of the thread; both empty: it works on no request. */
static _Thread_local struct log_subject subject;

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void log_open(const char *program, enum log_level least)
{
	logger.program = program;
	logger.least = least;
	logger.plain = isatty(STDERR_FILENO);
}

void log_set_least(enum log_level least)
{
	logger.least = least;
}

enum log_level log_least(void)
{
	return logger.least;
}

void log_set_subject(const struct log_subject *now)
{
	subject = now ? *now : (struct log_subject){.request = ""};
}

struct log_subject log_subject(void)
{
	return subject;
}

static bool is_plain(const char *text, size_t size)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	const char *end = memchr(text, '\0', size);

	return end && strspn(text, allowed) == (size_t)(end - text);
}

bool log_subject_is_plain(const struct log_subject *which)
{
	return is_plain(which->request, sizeof(which->request)) &&
	       is_plain(which->trace, sizeof(which->trace));
}

void log_set_request(const char *id, const char *trace)
{
	snprintf(subject.request, sizeof(subject.request), "%s", id ? id : "");
	/* "00-<trace>-<span>-<flags>" */
	snprintf(subject.trace, sizeof(subject.trace), "%s", trace && trace[0] ? trace + 3 : "");
}

/* Control characters as \u00XX, harmless on a terminal; in JSON quotes and backslashes too. */
static size_t escape(const char *text, char *out, size_t size)
{
	size_t len = 0;

	for (; *text && len + 7 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f || (!logger.plain && (c == '"' || c == '\\')))
			len = format_append(out, size, len, "\\u%04x", c);
		else
			out[len++] = (char)c;
	}
	out[len] = '\0';
	return len;
}

/* "14:03:07  a message", by the clock on the wall; who says it only if that is not the daemon. */
static size_t format_plain(enum log_level level, const char *message, char *line, size_t size)
{
	static const char *const marks[] = {"debug: ", "", "warning: ", "error: "};
	bool is_daemon = strcmp(logger.program, "sandlotd") == 0;
	time_t now = time(NULL);
	char clock[16] = "";
	struct tm local;

	if (localtime_r(&now, &local))
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	return format_append(line, size, 0, "%s  %s%s%s%s\n", clock, marks[level],
		is_daemon ? "" : logger.program, is_daemon ? "" : ": ", message);
}

static size_t format_json(
	enum log_level level, const char *now, const char *message, char *line, size_t size)
{
	size_t len =
		format_append(line, size, 0, "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\"",
			now, level_names[level], logger.program);

	if (subject.request[0])
		len = format_append(line, size, len, ",\"request_id\":\"%s\"", subject.request);
	if (subject.trace[0])
		len = format_append(line, size, len, ",\"trace_id\":\"%s\"", subject.trace);
	return format_append(line, size, len, ",\"message\":\"%s\"}\n", message);
}

void log_write(enum log_level level, const char *fmt, ...)
{
	char message[MESSAGE_MAX], escaped[MESSAGE_MAX * 2], line[MESSAGE_MAX * 2 + 320];
	char now[CLOCK_TEXT_LEN];
	int saved = errno;
	va_list ap;
	size_t len;

	if (level < logger.least)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	escape(message, escaped, sizeof(escaped));
	clock_format(clock_wall_ms(), now);
	if (logger.plain)
		len = format_plain(level, escaped, line, sizeof(line));
	else
		len = format_json(level, now, escaped, line, sizeof(line));
	/* One write a line, so that lines of several threads do not mix; a full disk loses the line. */
	if (write(STDERR_FILENO, line, len) < 0)
		errno = saved;
	errno = saved;
}
