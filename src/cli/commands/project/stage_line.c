/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/project/stage_line.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/text/table.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define WIDTH_USUAL 80

/* With the lock held, as all that draws. */
static void erase(struct stage_line *line)
{
	if (line->has_line)
		fputs("\r\033[K", stderr);
	line->has_line = false;
}

static void draw(struct stage_line *line)
{
	struct winsize size = {.ws_col = WIDTH_USUAL};
	double seconds = (double)(clock_steady_ms() - line->begun_ms) / 1000;
	auto_free char *text = NULL;
	int width;

	if (!line->is_shown || !line->stage[0])
		return;
	(void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	width = size.ws_col > 1 ? size.ws_col - 1 : WIDTH_USUAL - 1; /* a full line would wrap */
	text = mem_printf("sandlot: %-20s running  %6.1f s%s%s", line->stage, seconds,
		line->said[0] ? "  " : "", line->said);
	table_tame(text);
	if (strlen(text) > (size_t)width) /* a character has more bytes than it is wide */
		text[width - (int)format_unfinished(text, (size_t)width)] = '\0';
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	line->has_line = true;
}

static void *tick(void *arg)
{
	struct stage_line *line = arg;

	pthread_mutex_lock(&line->lock);
	while (!line->is_over) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&line->changed, &line->lock, &until);
		if (!line->is_over)
			draw(line);
	}
	pthread_mutex_unlock(&line->lock);
	return NULL;
}

void stage_line_init(struct stage_line *line, bool is_verbose)
{
	sigset_t all, before;

	*line = (struct stage_line){
		.is_verbose = is_verbose, .is_shown = isatty(STDERR_FILENO) == 1};
	pthread_mutex_init(&line->lock, NULL);
	pthread_cond_init(&line->changed, NULL);
	/* Signals are for the thread that reads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (line->is_shown && pthread_create(&line->thread, NULL, tick, line) != 0)
		line->is_shown = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stage_line_tell(struct stage_line *line, const json_t *event)
{
	const char *stage = cli_text(event, "stage"), *status = cli_text(event, "status");
	const char *log = cli_text(event, "log");
	json_int_t ms = json_integer_value(json_object_get(event, "duration_ms"));

	pthread_mutex_lock(&line->lock);
	erase(line);
	if (log[0] && line->is_verbose)
		cli_note("    %s", log);
	if (strcmp(status, "running") != 0) {
		cli_note("%-20s %-8s %6.1f s", stage, status, (double)ms / 1000);
		line->stage[0] = '\0';
	} else {
		if (strcmp(line->stage, stage) != 0) {
			snprintf(line->stage, sizeof(line->stage), "%s", stage);
			line->begun_ms = clock_steady_ms();
			line->said[0] = '\0';
		}
		if (log[0])
			snprintf(line->said, sizeof(line->said), "%s", log);
		draw(line);
	}
	pthread_mutex_unlock(&line->lock);
}

void stage_line_fini(struct stage_line *line)
{
	pthread_mutex_lock(&line->lock);
	line->is_over = true;
	erase(line);
	pthread_cond_broadcast(&line->changed);
	pthread_mutex_unlock(&line->lock);
	if (line->is_shown)
		pthread_join(line->thread, NULL);
	pthread_cond_destroy(&line->changed);
	pthread_mutex_destroy(&line->lock);
}
