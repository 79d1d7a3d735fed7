/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, for the person who reads it.
 *
 * A function that can fail returns 0 (or more), or -errno. Where a person may read the failure its
 * last parameter is a struct err, set once, where the failure is detected. The struct has a fixed
 * size and lives on the caller's stack: it needs no memory, works after clone, and travels over the
 * keeper's socket as it is.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>

/* What the caller can do about it; err.c has the HTTP status, exit code and errno of each. */
enum err_kind {
	ERR_NONE,
	ERR_INVALID,	     /* the request is wrong: change it */
	ERR_UNAUTHENTICATED, /* no valid token */
	ERR_DENIED,	     /* known, but not allowed */
	ERR_NOT_FOUND,	     /* it does not exist, or it belongs to another owner */
	ERR_METHOD,	     /* the route exists, not with this method */
	ERR_CONFLICT,	     /* the present state forbids it */
	ERR_PRECONDITION,    /* If-Match did not match */
	ERR_TOO_LARGE,	     /* over a limit of size */
	ERR_MEDIA_TYPE,	     /* the body's type is not understood */
	ERR_RANGE,	     /* the asked-for range lies outside */
	ERR_MISDIRECTED,     /* this Host is not served here */
	ERR_RATE,	     /* too many: try again later */
	ERR_UNAVAILABLE,     /* cannot now: try again later */
	ERR_TIMEOUT,	     /* did not answer in time */
	ERR_NO_SPACE,	     /* the disk is full */
	ERR_INTERNAL,	     /* a bug or a broken host: see the log */
	ERR_UPGRADE,	     /* only over another protocol: ask for it */
	ERR_BAD_GATEWAY,     /* code of the caller's own failed: change that */
	ERR_UNPROCESSABLE,   /* understood, but it contradicts what was asked before */
	ERR_KIND_COUNT,
};

struct err {
	int kind;		/* enum err_kind */
	char code[40];		/* stable name for programs: "sandbox_not_found" */
	char message[320];	/* what, which, why */
	char remedy[196];	/* what to do about it; may be empty */
	bool is_lasting;	/* trying again changes nothing, though its kind says "later" */
	unsigned retry_after_s; /* when it may be worth trying again; 0: unknown */
};

/* One row for each kind. */
struct err_class {
	const char *code; /* default of err.code */
	int http_status;
	int exit_code;
	int errnum;
	bool retryable;
};

const struct err_class *err_class(enum err_kind kind);

/* The kind whose default code that is; ERR_NONE if there is none. */
enum err_kind err_kind_of(const char *code);

/* Sets *err (which may be NULL) with the kind's default code; returns the kind's -errno. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with a code of its own and a remedy (NULL for none). */
int err_explain(struct err *err, enum err_kind kind, const char *code, const char *remedy,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/*
 * For a failed system call: appends the text of errno, chooses the kind from it (ENOSPC is
 * ERR_NO_SPACE, EAGAIN and friends ERR_UNAVAILABLE, the rest ERR_INTERNAL) and returns -errno.
 */
int err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a function that returned -errno. */
int err_from(struct err *err, int negative_errno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message of an error that is passed on. */
void err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
