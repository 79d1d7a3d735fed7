/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line an event on standard error, as JSON, or as plain text when that is a terminal.
 * Values are escaped, so a name that a tenant chose cannot forge a line. It is the only mutable
 * global, but for what a thread works on.
 */
#pragma once

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* Called once, before there are threads. */
void log_open(const char *program, enum log_level least);

/* Changes it; what was written before stays. */
void log_set_least(enum log_level least);
enum log_level log_least(void);

/* What a thread works on: a request, by its id and the trace it is in; both are empty if it is none. */
struct log_subject {
	char request[72];
	char trace[33];
};

/* What this thread logs from now on is about a request; NULL: no longer. Copied. */
void log_set_request(const char *id, const char *trace);

/* The same, for work that goes on in another thread or program; NULL: no longer. */
void log_set_subject(const struct log_subject *subject);
struct log_subject log_subject(void);

/* Whether both are texts that end, of letters, digits, '.', '_' and '-', as they stand in a line without quoting. */
bool log_subject_is_plain(const struct log_subject *subject);

void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...)	 log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)	 log_write(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_error(...)	 log_write(LOG_ERROR, __VA_ARGS__)
