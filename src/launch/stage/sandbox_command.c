/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/sandbox_command.h"

#include "base/format.h"
#include "core/process/command.h"
#include "core/process/process_wait.h"
#include "launch/stage/log_text.h"

#include <string.h>

#define LINE_LEN 500 /* of output, in one line that is told */

/* What a command says; of the event loop until its end. */
struct running {
	const struct sandbox_command *command;
	struct sandbox_command_end *to;
	char line[LINE_LEN + 1];
	size_t len, tail_len;
};

/* Tells a line. Of one that is too long the next has the rest, and a character that would be in both. */
static void end_line(struct running *running, bool is_cut)
{
	size_t rest = is_cut ? format_unfinished(running->line, running->len) : 0;
	char begun[4];

	running->len -= rest;
	memcpy(begun, running->line + running->len, rest);
	running->line[running->len] = '\0';
	log_text_clean(running->line);
	if (running->command->told && running->line[0])
		running->command->told(running->command->arg, running->line);
	memcpy(running->line, begun, rest);
	running->len = rest;
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
		const bool is_end = data[i] == '\n' || data[i] == '\r';

		if (is_end || running->len == LINE_LEN)
			end_line(running, !is_end);
		if (!is_end)
			running->line[running->len++] = data[i] ? (char)data[i] : '?';
	}
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
	struct process_wait wait = {.job = job, .output = take_output, .arg = &running};
	struct process_end end = {0};
	struct command command;
	int r = command_make(sandbox, &spec, &command, err);

	if (r < 0)
		return r;
	*ret_end = (struct sandbox_command_end){0};
	r = process_wait_run(sandbox, &command.spec, &wait, &end, err);
	end_line(&running, false);
	if (r == 0)
		r = process_explain_end(&end, command.cwd, err);
	ret_end->exit_code = end.exit_code;
	ret_end->is_timeout = end.how.reason == END_TIMEOUT;
	ret_end->how = end.how;
	command_fini(&command);
	return r;
}
