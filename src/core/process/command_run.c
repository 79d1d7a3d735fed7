/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/command_run.h"

#include "base/format.h"
#include "base/spool.h"

#include <stdatomic.h>
#include <stdlib.h>

struct command_run {
	atomic_int refs; /* the caller's and the watch's */
	struct process *process;
	char *cwd;    /* for messages */
	bool cancels; /* the command ends with its caller */
	struct spool output[2];
	struct command_run_events events;
	void *arg;
};

void command_run_unref(struct command_run *run)
{
	if (!run || atomic_fetch_sub(&run->refs, 1) > 1)
		return;
	process_unref(run->process);
	spool_fini(&run->output[0]);
	spool_fini(&run->output[1]);
	free(run->cwd);
	free(run);
}

static void release(void *arg)
{
	struct command_run *run = arg;

	run->events.release(run->arg);
	command_run_unref(run);
}

static void gather(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct command_run *run = arg;

	spool_put(&run->output[stream - 1], data, len);
}

/* The caller frees the bytes. */
static uint8_t *take_output(struct spool *spool, struct command_run_output *output)
{
	uint8_t *data = spool_take(spool);

	output->data = data;
	output->len = data ? spool->len : 0;
	output->is_cut = !data || spool->is_cut;
	if (data && spool->is_cut)
		output->len -= format_unfinished(data, output->len);
	return data;
}

static void tell_end(void *arg, const struct process_end *process_end)
{
	struct command_run *run = arg;
	struct command_run_end end = {.end = process_end};
	auto_free uint8_t *out = NULL, *error = NULL;
	struct err failure;

	if (process_explain_end(process_end, run->cwd, &failure) < 0) {
		end.failure = &failure;
	} else {
		out = take_output(&run->output[0], &end.output[0]);
		error = take_output(&run->output[1], &end.output[1]);
	}
	run->events.ended(run->arg, &end);
}

static const struct process_events watch_events = {
	.output = gather, .ended = tell_end, .release = release};

int command_run_new(struct sandbox *sandbox, const struct command *command,
	const struct command_run_limits *limits, const struct command_run_events *events, void *arg,
	struct command_run **ret_run, struct err *err)
{
	struct process *process;
	struct command_run *run;
	int r = process_new(sandbox, &process, err);

	if (r < 0)
		return r;
	run = mem_new(sizeof(*run));
	run->refs = 2;
	run->process = process;
	run->cwd = mem_strdup(command->spec.cwd);
	run->cancels = command->cancels_with_caller;
	run->events = *events;
	run->arg = arg;
	for (size_t i = 0; i < 2; i++)
		spool_init(&run->output[i], limits->spool_fd, limits->output_max,
			limits->disk_reserve);
	if (!process_watch(process, &watch_events, run))
		abort(); /* it does not run yet */
	*ret_run = run;
	return 0;
}

int command_run_start(struct command_run *run, const struct command *command, struct err *err)
{
	return process_run(run->process, &command->spec, err);
}

bool command_run_leave(struct command_run *run)
{
	if (run->cancels) {
		process_kill(run->process, true);
		process_unpace(run->process);
		return true;
	}
	process_unwatch(run->process, run);
	return false;
}
