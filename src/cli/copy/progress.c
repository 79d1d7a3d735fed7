/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/progress.h"

#include "base/clock.h"
#include "base/format.h"

#include <stdio.h>
#include <unistd.h>

#define EVERY_MS 200

void progress_init(struct progress *progress, int64_t total)
{
	uint64_t now_ms = clock_steady_ms();

	*progress = (struct progress){
		.is_shown = isatty(STDERR_FILENO) == 1,
		.total = total,
		.begin_ms = now_ms,
		.last_ms = now_ms,
	};
}

void progress_add(struct progress *progress, uint64_t bytes)
{
	uint64_t now_ms = clock_steady_ms();
	char done[FORMAT_SIZE_LEN];
	char rate[FORMAT_SIZE_LEN];

	progress->done += bytes;
	if (!progress->is_shown || now_ms - progress->last_ms < EVERY_MS)
		return;
	progress->last_ms = now_ms;
	format_size(progress->done, done);
	format_size(progress->done * 1000 / (now_ms - progress->begin_ms), rate);
	fprintf(stderr, "\r\033[K%s", done);
	if (progress->total > 0)
		fprintf(stderr, ", %u%%",
			(unsigned)(progress->done * 100 / (uint64_t)progress->total));
	fprintf(stderr, ", %s/s", rate);
	fflush(stderr);
	progress->has_line = true;
}

void progress_fini(struct progress *progress)
{
	if (progress->has_line)
		fputs("\r\033[K", stderr);
	progress->has_line = false;
}
