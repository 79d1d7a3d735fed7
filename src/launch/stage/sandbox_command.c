/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/sandbox_command.h"

#include "core/process/command.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define LOOK_MS	 200 /* between two looks whether the job must stop */
#define LINE_LEN 500 /* of output, in one line that is told */

/* A command under way: of the job's thread, and of the watch of its process. */
struct running {
	const struct sandbox_command *command;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_ended, is_released;	/* under the lock */
	struct process_end end;		/* likewise */
	struct sandbox_command_end *to; /* of the event loop until the end, as what follows */
	char line[LINE_LEN + 1];
	size_t len, tail_len;
};

static void end_line(struct running *running)
{
	running->line[running->len] = '\0';
	if (running->command->told && running->len > 0)
		running->command->told(running->command->arg, running->line);
	running->len = 0;
}

static void keep_tail(struct running *running, const uint8_t *data, size_t len)
{
	char *tail = running->to->tail;

	if (len > SANDBOX_COMMAND_TAIL) {
		data += len - SANDBOX_COMMAND_TAIL;
		len = SANDBOX_COMMAND_TAIL;
	}
	if (running->tail_len + len > SANDBOX_COMMAND_TAIL) {
		size_t drop = running->tail_len + len - SANDBOX_COMMAND_TAIL;

		memmove(tail, tail + drop, running->tail_len - drop);
		running->tail_len -= drop;
	}
	for (size_t i = 0; i < len; i++)
		tail[running->tail_len++] = data[i] ? (char)data[i] : ' ';
	tail[running->tail_len] = '\0';
}

static void take_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct running *running = arg;

	keep_tail(running, data, len);
	if (running->command->output) {
		if (stream == 1)
			buf_append(running->command->output, data, len);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n' || data[i] == '\r' || running->len == LINE_LEN)
			end_line(running);
		if (data[i] != '\n' && data[i] != '\r')
			running->line[running->len++] =
				data[i] < ' ' || data[i] > '~' ? '?' : (char)data[i];
	}
}

static void take_end(void *arg, const struct process_end *end)
{
	struct running *running = arg;

	end_line(running);
	pthread_mutex_lock(&running->lock);
	running->end = *end;
	running->has_ended = true;
	pthread_mutex_unlock(&running->lock);
}

static void released(void *arg)
{
	struct running *running = arg;

	pthread_mutex_lock(&running->lock);
	running->is_released = true;
	pthread_cond_broadcast(&running->changed);
	pthread_mutex_unlock(&running->lock);
}

static const struct process_events events = {
	.output = take_output, .ended = take_end, .release = released};

static void wait_a_while(struct running *running)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&running->changed, &running->lock, &until);
}

/* Until the watch is over; whether the job was told to stop meanwhile. */
static bool wait_for_end(struct running *running, struct job *job, struct process *process)
{
	bool is_stopped = false;

	pthread_mutex_lock(&running->lock);
	while (!running->is_released) {
		if (!is_stopped && job_must_stop(job)) {
			is_stopped = true;
			pthread_mutex_unlock(&running->lock);
			process_kill(process, true);
			pthread_mutex_lock(&running->lock);
			continue;
		}
		wait_a_while(running);
	}
	pthread_mutex_unlock(&running->lock);
	return is_stopped;
}

static int run(struct running *running, struct sandbox *sandbox, struct job *job,
	const struct command *command, struct err *err)
{
	auto_(process_unrefp) struct process *process = NULL;
	int r = process_new(sandbox, &process, err);

	if (r < 0)
		return r;
	if (!process_watch(process, &events, running))
		return err_set(err, ERR_INTERNAL, "a new process has ended");
	r = process_run(process, &command->spec, err);
	if (r < 0)
		return r;
	if (wait_for_end(running, job, process))
		return -ECANCELED;
	if (!running->has_ended)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox was lost");
	return process_explain_end(&running->end, command->cwd, err);
}

int sandbox_command_run(struct sandbox *sandbox, struct job *job,
	const struct sandbox_command *asked, struct sandbox_command_end *ret_end, struct err *err)
{
	struct command_spec spec = {.line = asked->line,
		.cwd = asked->cwd,
		.env = asked->env,
		.input = asked->input,
		.input_len = asked->input ? strlen(asked->input) : 0,
		.timeout_ms = asked->timeout_ms};
	struct running running = {.command = asked, .to = ret_end};
	struct command command;
	int r = command_make(sandbox, &spec, &command, err);

	if (r < 0)
		return r;
	*ret_end = (struct sandbox_command_end){0};
	pthread_mutex_init(&running.lock, NULL);
	pthread_cond_init(&running.changed, NULL);
	r = run(&running, sandbox, job, &command, err);
	ret_end->exit_code = running.end.exit_code;
	ret_end->is_timeout = running.end.how.reason == END_TIMEOUT;
	pthread_mutex_destroy(&running.lock);
	pthread_cond_destroy(&running.changed);
	command_fini(&command);
	return r;
}
