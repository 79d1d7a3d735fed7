/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast output is taken: the agent sends no more than a window beyond what was acknowledged. So a
 * paced process waits for its reader, and all others for their turn at the disk.
 */
#include "core/output/output_rate.h"
#include "core/process/process.h"
#include "core/process/process_state.h"
#include "wire/pack.h"

#define ACK_STEP   (AGENT_OUTPUT_WINDOW / 4)
#define PTY_WEIGHT 16 /* 65 ns for a byte were measured, and 4 for one of a pipe */

void process_send_ack(struct process *process, uint64_t offset)
{
	struct buf payload = BUF_INIT(16);

	pack_u64(&payload, offset);
	process_tell(process, AGENT_ACK, payload.data, payload.len);
	buf_fini(&payload);
}

/* After how many bytes something is acknowledged: a step of a terminal weighs as much as one of a pipe. */
static uint64_t ack_step(const struct process *process)
{
	return process->record.is_pty ? ACK_STEP / PTY_WEIGHT : ACK_STEP;
}

/* Acknowledges what was consumed, not for every few bytes. */
static void acknowledge(struct process *process)
{
	uint64_t ack = 0;

	pthread_mutex_lock(&process->lock);
	if (process->consumed - process->acked >= ack_step(process) && !process->ending)
		ack = process->acked = process->consumed;
	pthread_mutex_unlock(&process->lock);
	if (ack)
		process_send_ack(process, ack);
}

/* What a terminal costs the kernel: it looks at each character. */
static uint64_t weight(const struct process *process, uint64_t bytes)
{
	return process->record.is_pty ? bytes * PTY_WEIGHT : bytes;
}

static uint64_t go_on(void *arg)
{
	struct process *process = arg;
	uint64_t due;

	pthread_mutex_lock(&process->lock);
	process->is_waiting = false;
	due = process->consumed - process->acked;
	pthread_mutex_unlock(&process->lock);
	due = weight(process, due);
	acknowledge(process);
	process_unref(process);
	return due;
}

void process_acknowledge(struct process *process)
{
	struct output_rate *output_rate = process->sandbox->engine->output_rate;
	uint64_t due;
	bool waits;

	pthread_mutex_lock(&process->lock);
	due = process->consumed - process->acked;
	waits = process->is_waiting || due < ack_step(process) || process->ending;
	if (!waits)
		process->is_waiting = true;
	pthread_mutex_unlock(&process->lock);
	if (waits)
		return;
	if (!output_rate_allows(output_rate, weight(process, due))) {
		output_rate_park(output_rate, process->sandbox, go_on, process_ref(process));
		return;
	}
	pthread_mutex_lock(&process->lock);
	process->is_waiting = false;
	pthread_mutex_unlock(&process->lock);
	acknowledge(process);
}

void process_consumed(struct process *process, uint64_t offset)
{
	pthread_mutex_lock(&process->lock);
	if (process->pacers > 0 && offset > process->consumed)
		process->consumed = offset;
	pthread_mutex_unlock(&process->lock);
	if (process->record.is_pty)
		process_acknowledge(process);
	else
		acknowledge(process);
}

void process_note_shown(struct process *process, uint64_t offset)
{
	pthread_mutex_lock(&process->lock);
	if (offset > process->shown)
		process->shown = offset;
	pthread_mutex_unlock(&process->lock);
}

uint64_t process_shown(struct process *process)
{
	uint64_t shown;

	pthread_mutex_lock(&process->lock);
	shown = process->shown;
	pthread_mutex_unlock(&process->lock);
	return shown;
}

void process_pace(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	process->pacers++;
	pthread_mutex_unlock(&process->lock);
}

void process_unpace(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	if (process->pacers > 0 && --process->pacers == 0)
		process->consumed = process->record.output_bytes;
	pthread_mutex_unlock(&process->lock);
	acknowledge(process);
}
