/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the console that were built into the program, by scripts/web.sh from web/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum console_coding { CONSOLE_PLAIN, CONSOLE_GZIP, CONSOLE_BROTLI, CONSOLE_CODINGS };

struct console_asset {
	const char *path; /* "/assets/index-Ds5mSzpc.js" */
	const char *type;
	const char *etag;  /* of its bytes, without quotes */
	bool is_immutable; /* its name changes with its bytes */
	/* Where its bytes are in console_bytes, as they are and compressed; of length 0 if it is not worth it. */
	struct {
		size_t offset, len;
	} forms[CONSOLE_CODINGS];
};

/* By path. None if the console could not be built; then console_absence says why. */
extern const struct console_asset console_assets[];
extern const size_t console_asset_count;
extern const unsigned char console_bytes[];
extern const char console_absence[];
