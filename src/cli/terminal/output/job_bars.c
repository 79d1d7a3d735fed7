/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/output/job_bars.h"

#include "base/format.h"
#include "cli/cli.h"
#include "cli/terminal/interrupt.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LOOK_MS	  200
#define BAR_WIDTH 30
#define BARS_MAX  20 /* more do not fit on a screen */

struct job_bars {
	bool is_drawn;	/* standard error is a terminal */
	unsigned lines; /* that were drawn last */
	char last[200]; /* what was said last, where it is not */
};

/* Takes away what was drawn. */
static void erase(struct job_bars *bars)
{
	if (bars->lines > 0)
		fprintf(stderr, "\033[%uA\r\033[J", bars->lines);
	bars->lines = 0;
}

static void draw_layer(size_t number, uint64_t done, uint64_t total)
{
	unsigned filled = total ? (unsigned)(done * BAR_WIDTH / total) : 0;
	char bar[BAR_WIDTH + 1], have[FORMAT_SIZE_LEN], of[FORMAT_SIZE_LEN];

	filled = filled > BAR_WIDTH ? BAR_WIDTH : filled;
	memset(bar, '#', filled);
	memset(bar + filled, '-', BAR_WIDTH - filled);
	bar[BAR_WIDTH] = '\0';
	format_size(done, have);
	format_size(total, of);
	fprintf(stderr, "layer %-3zu [%s] %s of %s\n", number, bar, have, of);
}

/* A line that wraps would be two of them to take away. */
static void draw_text(const char *text)
{
	auto_free char *line = mem_strdup(text);
	struct winsize size = {0};

	table_tame(line);
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
		strlen(line) >= size.ws_col)
		line[size.ws_col - 1u - format_unfinished(line, size.ws_col - 1u)] = '\0';
	fprintf(stderr, "%s\n", line);
}

static void draw(struct job_bars *bars, const json_t *job)
{
	const json_t *layers = json_object_get(json_object_get(job, "result"), "layers"), *layer;
	const char *progress = cli_text(job, "progress");
	size_t i;

	erase(bars);
	json_array_foreach((json_t *)layers, i, layer)
	{
		uint64_t done = (uint64_t)json_integer_value(json_object_get(layer, "done_bytes"));
		uint64_t total =
			(uint64_t)json_integer_value(json_object_get(layer, "total_bytes"));

		/* What is there already is not fetched, and has no bytes to tell of. */
		if (total == 0 || bars->lines >= BARS_MAX)
			continue;
		draw_layer(i + 1, done, total);
		bars->lines++;
	}
	draw_text(progress[0] ? progress : cli_text(job, "state"));
	bars->lines++;
	fflush(stderr);
}

static void say(struct job_bars *bars, const json_t *job)
{
	const char *progress = cli_text(job, "progress");

	if (!progress[0] || strcmp(progress, bars->last) == 0)
		return;
	snprintf(bars->last, sizeof(bars->last), "%s", progress);
	cli_note("%s", progress);
}

static bool is_over(const json_t *job)
{
	const char *state = cli_text(job, "state");

	return strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
}

static int explain(const json_t *job, struct err *err)
{
	const json_t *error = json_object_get(job, "error");

	if (strcmp(cli_text(job, "state"), "succeeded") == 0)
		return 0;
	if (!json_is_object(error))
		return err_set(err, ERR_CONFLICT, "it was %s", cli_text(job, "state"));
	/* What may work later ends with the exit code that says so, as if the request itself had failed. */
	return err_explain(err,
		json_is_true(json_object_get(error, "retryable")) ? ERR_UNAVAILABLE : ERR_CONFLICT,
		cli_text(error, "code"), cli_text(error, "remediation"), "%s",
		cli_text(error, "message"));
}

/* One look: 1 while it is not over. */
static int look(struct job_bars *bars, struct client *client, const char *path, struct err *err)
{
	json_auto_t *job = NULL;
	int r = client_json(
		client, &(struct client_call){.method = "GET", .path = path}, &job, err);

	if (r < 0)
		return r;
	if (is_over(job)) {
		erase(bars);
		return explain(job, err);
	}
	if (bars->is_drawn)
		draw(bars, job);
	else
		say(bars, job);
	return 1;
}

int job_bars_wait(struct client *client, const char *id, struct err *err)
{
	auto_free char *path = mem_printf("/v1/jobs/%s", id);
	struct interrupt *interrupt = client_interrupt(client);
	struct job_bars bars = {.is_drawn = isatty(STDERR_FILENO) == 1};
	int r = interrupt_hold(interrupt, err);

	interrupt_watch(interrupt, true);
	while (r >= 0 && (r = look(&bars, client, path, err)) == 1)
		r = interrupt_wait(interrupt, -1, 0, LOOK_MS, err);
	erase(&bars);
	interrupt_watch(interrupt, false);
	if (r == -EINTR)
		cli_note("it goes on without us: sandlot job show %s", id);
	return r;
}
