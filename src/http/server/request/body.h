/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict reader of JSON bodies: one object, UTF-8, no byte order mark, no NUL, no key twice, no NaN,
 * nested at most BODY_DEPTH deep, nothing behind it.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>

#define BODY_DEPTH 64

/* Any JSON value. */
int body_parse_any(const char *text, size_t len, json_t **ret_value, struct err *err) must_check;
int body_parse(const char *text, size_t len, json_t **ret_object, struct err *err) must_check;
