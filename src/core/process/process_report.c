/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent reports of its processes: hostile input, on the event loop's thread. Whatever does not fit
 * what was said before is -EPROTO, and ends the link.
 */
#include "base/clock.h"
#include "core/process/exit_reason.h"
#include "core/process/process.h"
#include "core/process/process_announce.h"
#include "core/process/process_state.h"
#include "core/process/process_usage.h"
#include "core/process/process_watchers.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define INPUT_LOW  (64u << 10)
#define OFFSET_MAX (1ull << 62) /* of output */

static int on_started(struct process *process, struct unpack *in)
{
	uint32_t pid = unpack_u32(in);
	bool is_repeated;

	if (!unpack_done(in))
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	is_repeated = process->started;
	process->started = true;
	process->record.pid = pid;
	pthread_mutex_unlock(&process->lock);
	if (is_repeated)
		return process->is_adopted ? 0 : -EPROTO;
	process_note_change(process);
	process_watchers_tell_started(process, pid);
	if (process->log && !process->is_adopted)
		process_announce(process, "process.started");
	if (process->start_command && !process->is_adopted)
		process->starter->started(process->start_command, process->record.number);
	pthread_mutex_lock(&process->lock);
	process_push_input(process);
	pthread_mutex_unlock(&process->lock);
	return 0;
}

/* When output was written that the agent says it has had for a while: the agent may lie, but not into other times. */
static int64_t time_of_output(const struct process *process, uint32_t age_ms)
{
	uint64_t lived_ms = (clock_steady_us() - process->started_us) / 1000;

	return clock_wall_ms() - (int64_t)(age_ms < lived_ms ? age_ms : lived_ms);
}

/* Adds new bytes to the log, then tells the watchers. */
static void add_output(
	struct process *process, int stream, int64_t at_ms, const uint8_t *data, size_t len)
{
	process->offset += len;
	/* Output counts as use of the sandbox, but not that of a start command. */
	if (!process->start_command)
		sandbox_note_use(process->sandbox);
	if (process->log)
		output_log_append(process->log, stream, at_ms, data, len);
	pthread_mutex_lock(&process->lock);
	process->record.output_bytes = process->offset;
	if (process->pacers == 0)
		process->consumed = process->offset;
	pthread_mutex_unlock(&process->lock);
	process_watchers_tell_output(process, stream, data, len);
	process_acknowledge(process);
}

/* What a shell would say about a program that cannot be run. No program of the sandbox says it, so it tells who does. */
static void say_not_run(struct process *process, int errnum)
{
	const char *program = json_string_value(json_array_get(process->record.argv, 0));
	/* A path may be there: what its first line names is not. */
	bool is_missing = errnum == ENOENT && !strchr(program, '/');
	auto_free char *line =
		is_missing ? mem_printf("sandlot: there is no program \"%s\" in the sandbox\n",
				     program)
			   : mem_printf("sandlot: cannot run %s: %s\n", program, strerror(errnum));

	add_output(process, 2, clock_wall_ms(), (const uint8_t *)line, strlen(line));
}

static int on_failed(struct process *process, struct unpack *in)
{
	uint8_t stage = unpack_u8(in);
	struct process_end how = {
		.errnum = (int)unpack_u32(in), .how.reason = END_EXITED, .exit_code = 126};

	if (!unpack_done(in) || process->started || stage < AGENT_STAGE_SETUP ||
		stage > AGENT_STAGE_EXEC)
		return -EPROTO;
	how.outcome = stage == AGENT_STAGE_CWD	  ? PROCESS_BAD_CWD
		      : stage == AGENT_STAGE_EXEC ? PROCESS_NOT_RUN
						  : PROCESS_REFUSED;
	if (how.errnum == ENOENT || how.errnum == ENOTDIR)
		how.exit_code = 127;
	how.duration_us = clock_steady_us() - process->started_us;
	/* Of an interpreter whoever asked for it says what is missing. */
	if (how.outcome == PROCESS_NOT_RUN && !process->is_titled)
		say_not_run(process, how.errnum);
	process_come_to_end(process, &how);
	return 0;
}

/*
 * The agent sends again what it believes was not acknowledged: of an adopted process some of that may be
 * in the log already. And the disk may have lost some that was acknowledged; that is a cut.
 */
static int meet_offset(struct process *process, uint64_t offset, const uint8_t **data, size_t *len)
{
	if (offset == process->offset)
		return 0;
	if (!process->is_adopted || offset > OFFSET_MAX)
		return -EPROTO;
	if (offset > process->offset) {
		output_log_skip(process->log, offset);
		process->offset = offset;
		return 0;
	}
	if (offset + *len <= process->offset) {
		*len = 0;
		return 0;
	}
	*data += process->offset - offset;
	*len -= process->offset - offset;
	return 0;
}

static int on_output(struct process *process, struct unpack *in)
{
	uint64_t offset = unpack_u64(in), acked;
	uint8_t stream = unpack_u8(in);
	uint32_t age_ms = unpack_u32(in);
	size_t len = (size_t)(in->end - in->at);
	const uint8_t *data = in->at;

	/* An empty piece would not count against the window, however many there are. */
	if (in->bad || len == 0 || offset > OFFSET_MAX || stream < 1 || stream > 3)
		return -EPROTO;
	/* Of one that was adopted nobody remembers whether it may. */
	if (stream == 3 && !process->has_result && !process->is_adopted)
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	acked = process->acked;
	pthread_mutex_unlock(&process->lock);
	if (!process->is_adopted && offset + len - acked > AGENT_OUTPUT_WINDOW)
		return -EPROTO;
	if (meet_offset(process, offset, &data, &len) < 0)
		return -EPROTO;
	if (len > 0)
		add_output(process, stream, time_of_output(process, age_ms), data, len);
	return 0;
}

static int on_input_ack(struct process *process, struct unpack *in)
{
	uint64_t taken = unpack_u64(in), received = unpack_u64(in);
	bool is_drained;

	if (!unpack_done(in) || taken > received)
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	/* What a daemon before us had sent. */
	if (process->is_adopted && received > process->input_sent)
		process->input_sent = received;
	if (taken < process->input_taken || taken > process->input_sent) {
		pthread_mutex_unlock(&process->lock);
		return -EPROTO;
	}
	process->input_taken = taken;
	process_push_input(process);
	is_drained = process->input.len < INPUT_LOW;
	pthread_mutex_unlock(&process->lock);
	if (is_drained)
		process_watchers_tell_drained(process);
	return 0;
}

static int on_survivors(struct process *process, struct unpack *in)
{
	uint32_t count = unpack_u32(in);
	bool is_over;

	if (!unpack_done(in))
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	is_over = count == 0 && process->record.survivors > 0 && process->ending;
	process->record.survivors = count;
	pthread_mutex_unlock(&process->lock);
	if (is_over)
		process_leave_later(process);
	return 0;
}

/* Names are found later; a number that has none is shown as it is. */
static void unpack_denied(struct unpack *in, struct termination *end)
{
	uint32_t count = unpack_u32(in);

	static_assert(AGENT_DENIED_MAX <= TERMINATION_DENIED_MAX, "a record holds all");
	if (count > AGENT_DENIED_MAX)
		in->bad = true;
	for (uint32_t i = 0; i < count && !in->bad; i++) {
		end->denied[i].number = unpack_u32(in);
		end->denied[i].times = unpack_u32(in);
		end->denied_count = i + 1;
	}
}

static int on_exited(struct process *process, struct unpack *in)
{
	struct process_end how = {.outcome = PROCESS_RAN};
	uint32_t status = unpack_u32(in);
	uint64_t end_offset = unpack_u64(in);
	struct exit_reason_facts facts;
	const uint8_t *none = NULL;
	size_t no_len = 0;

	how.how.cpu_us = unpack_u64(in);
	how.how.peak_memory_bytes = unpack_u64(in);
	how.duration_us = unpack_u64(in);
	facts.oom_kills = unpack_u32(in);
	facts.refused_forks = unpack_u32(in);
	facts.flags = unpack_u32(in);
	unpack_denied(in, &how.how);
	if (!unpack_done(in) || meet_offset(process, end_offset, &none, &no_len) < 0)
		return -EPROTO;
	exit_reason_reach(process, (int)status, &facts, &how);
	process_come_to_end(process, &how);
	return 0;
}

static const struct {
	uint16_t kind;
	int (*take)(struct process *process, struct unpack *in);
} takers[] = {
	{AGENT_STARTED, on_started},
	{AGENT_FAILED, on_failed},
	{AGENT_OUTPUT, on_output},
	{AGENT_STDIN_ACK, on_input_ack},
	{AGENT_SURVIVORS, on_survivors},
	{AGENT_EXITED, on_exited},
	{AGENT_USED, process_usage_take},
};

static bool is_ending(struct process *process)
{
	bool ending;

	pthread_mutex_lock(&process->lock);
	ending = process->ending;
	pthread_mutex_unlock(&process->lock);
	return ending;
}

int process_frame(struct sandbox *sandbox, const struct frame *frame)
{
	struct unpack in = UNPACK_INIT(frame->payload, frame->len);
	struct process *process;
	size_t i = 0;
	int r;

	atomic_fetch_add(&sandbox->agent_reports, 1);
	while (i < array_len(takers) && takers[i].kind != frame->kind)
		i++;
	if (i == array_len(takers))
		return -EPROTO;
	pthread_mutex_lock(&sandbox->state);
	for (process = sandbox->processes; process && process->record.number != frame->id;)
		process = process->next;
	if (process)
		process_ref(process);
	pthread_mutex_unlock(&sandbox->state);
	/* One that was given up on, or belonged to a daemon before us. */
	if (!process)
		return 0;
	/* Its end was told: all that can follow is that the last survivor is gone. */
	r = frame->kind == AGENT_SURVIVORS || !is_ending(process) ? takers[i].take(process, &in)
								  : 0;
	process_unref(process);
	return r;
}
