/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/format.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_class classes[ERR_KIND_COUNT] = {
	[ERR_NONE] = {"ok", 200, 0, 0, false},
	[ERR_INVALID] = {"invalid_request", 400, 2, EINVAL, false},
	[ERR_UNAUTHENTICATED] = {"unauthenticated", 401, 77, EACCES, false},
	[ERR_DENIED] = {"permission_denied", 403, 77, EPERM, false},
	[ERR_NOT_FOUND] = {"not_found", 404, 3, ENOENT, false},
	[ERR_METHOD] = {"method_not_allowed", 405, 2, EOPNOTSUPP, false},
	[ERR_CONFLICT] = {"conflict", 409, 4, EEXIST, false},
	[ERR_PRECONDITION] = {"precondition_failed", 412, 4, ESTALE, false},
	[ERR_TOO_LARGE] = {"too_large", 413, 2, EMSGSIZE, false},
	[ERR_MEDIA_TYPE] = {"unsupported_media_type", 415, 2, EINVAL, false},
	[ERR_RANGE] = {"range_not_satisfiable", 416, 2, ERANGE, false},
	[ERR_MISDIRECTED] = {"misdirected_request", 421, 2, EINVAL, false},
	[ERR_RATE] = {"too_many_requests", 429, 75, EAGAIN, true},
	[ERR_UNAVAILABLE] = {"unavailable", 503, 75, EAGAIN, true},
	[ERR_TIMEOUT] = {"timeout", 504, 75, ETIMEDOUT, true},
	[ERR_NO_SPACE] = {"out_of_disk", 507, 74, ENOSPC, true},
	[ERR_INTERNAL] = {"internal_error", 500, 70, EIO, false},
	[ERR_UPGRADE] = {"upgrade_required", 426, 2, EPROTO, false},
	[ERR_BAD_GATEWAY] = {"bad_gateway", 502, 1, EREMOTEIO, false},
	[ERR_UNPROCESSABLE] = {"unprocessable", 422, 2, EINVAL, false},
};

const struct err_class *err_class(enum err_kind kind)
{
	assert(kind < ERR_KIND_COUNT);
	return &classes[kind];
}

enum err_kind err_kind_of(const char *code)
{
	for (size_t i = 0; i < array_len(classes); i++) {
		if (strcmp(classes[i].code, code) == 0)
			return (enum err_kind)i;
	}
	return ERR_NONE;
}

/* A text that fills its place may have lost its end: it says so. No half of a character stays, because JSON takes
 * none. */
static void mend_end(char *text, size_t size)
{
	static const char dots[] = "...";
	size_t len = strlen(text);

	if (len < size - 1)
		return;
	len -= sizeof(dots) - 1;
	len -= format_unfinished(text, len);
	memcpy(text + len, dots, sizeof(dots));
}

static void __attribute__((format(printf, 5, 0))) fill(struct err *err, enum err_kind kind,
	const char *code, const char *remedy, const char *fmt, va_list ap)
{
	*err = (struct err){.kind = kind};
	snprintf(err->code, sizeof(err->code), "%s", code ? code : classes[kind].code);
	snprintf(err->remedy, sizeof(err->remedy), "%s", remedy ? remedy : "");
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	mend_end(err->message, sizeof(err->message));
	mend_end(err->remedy, sizeof(err->remedy));
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (err)
		fill(err, kind, NULL, NULL, fmt, ap);
	va_end(ap);
	return -err_class(kind)->errnum;
}

int err_explain(struct err *err, enum err_kind kind, const char *code, const char *remedy,
	const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (err)
		fill(err, kind, code, remedy, fmt, ap);
	va_end(ap);
	return -err_class(kind)->errnum;
}

static enum err_kind kind_of_errno(int errnum)
{
	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
		return ERR_NO_SPACE;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return ERR_UNAVAILABLE;
	case ETIMEDOUT:
		return ERR_TIMEOUT;
	default:
		return ERR_INTERNAL;
	}
}

static int __attribute__((format(printf, 3, 0)))
from_errno(struct err *err, int errnum, const char *fmt, va_list ap)
{
	if (err) {
		size_t len;

		fill(err, kind_of_errno(errnum), NULL, NULL, fmt, ap);
		len = strlen(err->message);
		snprintf(err->message + len, sizeof(err->message) - len, ": %s", strerror(errnum));
		mend_end(err->message, sizeof(err->message));
	}
	return -errnum;
}

int err_sys(struct err *err, const char *fmt, ...)
{
	int errnum = errno;
	va_list ap;

	va_start(ap, fmt);
	from_errno(err, errnum, fmt, ap);
	va_end(ap);
	return -errnum;
}

int err_from(struct err *err, int negative_errno, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	from_errno(err, -negative_errno, fmt, ap);
	va_end(ap);
	return negative_errno;
}

void err_prefix(struct err *err, const char *fmt, ...)
{
	char prefix[sizeof(err->message)];
	char rest[sizeof(err->message)];
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	memcpy(rest, err->message, sizeof(rest));
	/* A message too long for its place loses its end, never its beginning. */
	if (snprintf(err->message, sizeof(err->message), "%s: %s", prefix, rest) < 0)
		err->message[0] = '\0';
	mend_end(err->message, sizeof(err->message));
}
