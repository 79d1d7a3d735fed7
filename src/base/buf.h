/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte buffer that grows up to a maximum that is set when it is initialized.
 *
 * Appending past the maximum fails with -EMSGSIZE and leaves the content as it was; the failure is
 * remembered in `failed`, so a run of appends can be checked once at its end.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

struct buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max;
	bool failed;
};

#define BUF_INIT(maximum) ((struct buf){.max = (maximum)})

void buf_fini(struct buf *buf);
int buf_reserve(struct buf *buf, size_t more) must_check;
int buf_append(struct buf *buf, const void *data, size_t len);
int buf_append_str(struct buf *buf, const char *s);
int buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Drops the first len bytes. */
void buf_consume(struct buf *buf, size_t len);

/* The content as a C string that the caller frees; the buffer is empty afterwards. */
char *buf_take_str(struct buf *buf);
