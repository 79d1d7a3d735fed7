/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/cpuinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

/* Some programs count cores by these two lines instead of by blocks. */
static void put_line(FILE *out, const char *line, unsigned count)
{
	const char *colon = strchr(line, ':');
	bool is_count = begins(line, "siblings") || begins(line, "cpu cores");

	if (is_count && colon && strtoul(colon + 1, NULL, 10) > count)
		fprintf(out, "%.*s: %u\n", (int)(colon - line), line, count);
	else
		fputs(line, out);
}

int cpuinfo_cut(FILE *in, FILE *out, unsigned count)
{
	char *line = NULL;
	size_t cap = 0;
	unsigned seen = 0;
	bool starts_block = true, is_kept = true;

	while (getline(&line, &cap, in) > 0) {
		if (starts_block)
			is_kept = !begins(line, "processor") || seen++ < count;
		starts_block = line[0] == '\n';
		if (is_kept)
			put_line(out, line, count);
	}
	free(line);
	return ferror(in) || ferror(out) ? -EIO : 0;
}
