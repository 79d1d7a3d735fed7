/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line an event on standard error, as JSON, or as plain text when that is a terminal.
 * Values are escaped, so a name that a tenant chose cannot forge a line. It is the only mutable
 * global, but for what a thread works on.
 */
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* Called once, before there are threads. */
void log_open(const char *program, enum log_level least);

/* What this thread logs from now on is about a request, by its id and the trace it is in; NULL: no longer. Copied. */
void log_set_request(const char *id, const char *trace);

void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...)	 log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)	 log_write(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_error(...)	 log_write(LOG_ERROR, __VA_ARGS__)
