/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a sandbox, whose bytes its programs chose, on a terminal. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* Adds a space and data[name]: as it is, quoted as in JSON if need be, or in base64 if it is no text. */
void path_text_add(struct buf *line, const json_t *data, const char *name);
