/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input: a window to the agent, and a bound on what waits for it. */
#include "base/format.h"
#include "core/process/process.h"
#include "core/process/process_state.h"

void process_push_input(struct process *process)
{
	while (process->started) {
		uint64_t under_way = process->input_sent - process->input_taken;
		size_t n = AGENT_STDIN_WINDOW - (size_t)under_way;

		if (process->input_ends && process->input_sent == process->input_end) {
			process->input_ends = false;
			process_tell(process, AGENT_STDIN_CLOSE, NULL, 0);
		}
		if (n > process->input.len)
			n = process->input.len;
		if (process->input_ends && n > process->input_end - process->input_sent)
			n = (size_t)(process->input_end - process->input_sent);
		if (n == 0)
			break;
		process_tell(process, AGENT_STDIN, process->input.data, n);
		process->input_sent += n;
		buf_consume(&process->input, n);
		if (process->input.len == 0)
			buf_fini(&process->input);
	}
}

static int add_input(
	struct process *process, const void *data, size_t len, bool close, struct err *err)
{
	char waiting[FORMAT_SIZE_LEN];

	if (process->ending)
		return process_has_ended(process->record.number, err);
	if (!process->record.is_input_open)
		return err_explain(err, ERR_CONFLICT, "stdin_closed",
			"start it with \"stdin_open\": true",
			"standard input of process p%u is closed", process->record.number);
	if (process->input.len + len > PROCESS_INPUT_MAX || (close && process->input_ends)) {
		format_size(process->input.len, waiting);
		return err_explain(err, ERR_RATE, "stdin_full", "send it again later",
			"process p%u does not read: %s of input wait already",
			process->record.number, waiting);
	}
	buf_append(&process->input, data, len);
	if (close) {
		/* A terminal goes on after an end of file: the program decides what that means. */
		process->record.is_input_open = process->record.is_pty;
		process->input_ends = true;
		process->input_end = process->input_sent + process->input.len;
	}
	process_push_input(process);
	return 0;
}

int process_write(struct process *process, const void *data, size_t len, bool close,
	size_t *ret_waiting, struct err *err)
{
	int r;

	pthread_mutex_lock(&process->lock);
	r = add_input(process, data, len, close, err);
	if (r == 0 && ret_waiting)
		*ret_waiting = process->input.len;
	pthread_mutex_unlock(&process->lock);
	if (r == 0 && close)
		process_note_change(process);
	return r;
}

int process_write_last(struct process *process, const void *data, size_t len, struct err *err)
{
	int r;

	pthread_mutex_lock(&process->lock);
	r = add_input(process, data, len, true, err);
	pthread_mutex_unlock(&process->lock);
	return r;
}
