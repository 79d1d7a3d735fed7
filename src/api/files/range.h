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
 * The Range header that counts, or NULL: with an If-Range header it does so only for a file that still has the tag
 * which is named there. A date is no tag, and a weak tag says nothing about bytes.
 */
const char *range_header(const char *range, const char *if_range, const char *tag);

/*
 * One range ("bytes=a-b", "bytes=a-", "bytes=-n") of a file of `size` bytes; all of it without a header
 * (NULL). What is not understood, several ranges among it, is ignored, as HTTP wants it; what lies outside is
 * ERR_RANGE.
 */
int range_read(const char *header, uint64_t size, struct range *ret_range, struct err *err)
	must_check;
