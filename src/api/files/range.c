/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files/range.h"

#include "base/format.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

const char *range_header(const char *range, const char *if_range, const char *tag)
{
	return !if_range || strcmp(if_range, tag) == 0 ? range : NULL;
}

int range_read(const char *header, uint64_t size, struct range *ret_range, struct err *err)
{
	char text[64], *dash;
	uint64_t first, last;

	*ret_range = (struct range){.length = size};
	if (!header || strncmp(header, "bytes=", 6) != 0 || strlen(header) >= sizeof(text))
		return 0;
	snprintf(text, sizeof(text), "%s", header + 6);
	dash = strchr(text, '-');
	if (!dash)
		return 0;
	*dash++ = '\0';
	if (!text[0]) {
		if (number_parse(dash, 0, UINT64_MAX, &last) < 0)
			return 0;
		first = last < size ? size - last : 0;
		last = last == 0 ? 0 : UINT64_MAX;
		if (size == 0 || last == 0)
			first = size; /* unsatisfiable */
	} else {
		if (number_parse(text, 0, UINT64_MAX, &first) < 0)
			return 0;
		last = UINT64_MAX;
		if (dash[0] && (number_parse(dash, 0, UINT64_MAX, &last) < 0 || last < first))
			return 0;
	}
	if (first >= size) {
		char has[FORMAT_SIZE_LEN];

		format_size(size, has);
		return err_explain(err, ERR_RANGE, NULL, NULL, "the file has only %s", has);
	}
	if (last >= size)
		last = size - 1;
	*ret_range = (struct range){.offset = first, .length = last - first + 1, .partial = true};
	return 0;
}
