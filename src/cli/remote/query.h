/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the path and query of a request. */
#pragma once

#include "base/buf.h"

/* Appends one part of a path, percent-encoded, slashes too. */
void query_escape(struct buf *target, const char *text);

/* Appends "?name=value" or "&name=value", percent-encoded; does nothing if value is NULL. */
void query_add(struct buf *target, const char *name, const char *value);
