/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/note.h"

#include "base/mem.h"
#include "cli/text/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void cli_note(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_tame(text);
	fflush(stdout);
	fprintf(stderr, "sandlot: %s\n", text);
}
