/* SPDX-License-Identifier: Apache-2.0 */
/* What a person types that nobody beside them should read. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Reads a line from standard input, which must be a terminal, without showing it, and appends it without
 * its end; -EMSGSIZE if it does not fit. The terminal is as it was afterwards, and whenever a signal ends or
 * stops us meanwhile.
 */
int hidden_input_read(struct buf *line, struct err *err) must_check;
