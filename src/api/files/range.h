/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a file that a Range header asks for. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct range {
	uint64_t offset, length;
	bool partial;
};

/*
 * One range ("bytes=a-b", "bytes=a-", "bytes=-n") of a file of `size` bytes; all of it without a header
 * (NULL). What is not understood, several ranges among it, is ignored, as HTTP wants it; what lies outside is
 * ERR_RANGE.
 */
int range_read(const char *header, uint64_t size, struct range *ret_range, struct err *err)
	must_check;
