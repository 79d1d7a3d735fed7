/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 1024

static struct {
	const char *program;
	enum log_level least;
	bool plain;
} logger = {.program = "sandlot", .least = LOG_INFO};

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void log_open(const char *program, enum log_level least)
{
	logger.program = program;
	logger.least = least;
	logger.plain = isatty(STDERR_FILENO);
}

/* Control characters, quotes and backslashes as \u00XX: right for JSON, and harmless on a terminal. */
static size_t escape(const char *text, char *out, size_t size)
{
	size_t len = 0;

	for (; *text && len + 7 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
			len += (size_t)snprintf(out + len, size - len, "\\u%04x", c);
		else
			out[len++] = (char)c;
	}
	out[len] = '\0';
	return len;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	char message[MESSAGE_MAX], escaped[MESSAGE_MAX * 2], line[MESSAGE_MAX * 2 + 160];
	char now[CLOCK_TEXT_LEN];
	int saved = errno;
	va_list ap;
	int len;

	if (level < logger.least)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	escape(message, escaped, sizeof(escaped));
	clock_format(clock_wall_ms(), now);
	if (logger.plain)
		len = snprintf(line, sizeof(line), "%s %-7s %s: %s\n", now, level_names[level],
			logger.program, escaped);
	else
		len = snprintf(line, sizeof(line),
			"{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"message\":\"%s\"}"
			"\n",
			now, level_names[level], logger.program, escaped);
	/* One write a line, so that lines of several threads do not mix; a full disk loses the line. */
	if (len > 0 && write(STDERR_FILENO, line, (size_t)len) < 0)
		errno = saved;
	errno = saved;
}
