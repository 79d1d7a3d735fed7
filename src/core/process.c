/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames from the agent come on the reactor's thread and are dealt with there, but for the end of a
 * process that is kept: that is handed to the scribe, who writes it into the database and then reports
 * it. Events are called without a lock, on copies of the list of watchers.
 */
#include "core/process.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/audience.h"
#include "core/governor.h"
#include "core/network.h"
#include "core/process_state.h"
#include "core/roll.h"
#include "core/scribe.h"
#include "core/verdict.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#define ACK_STEP	 (AGENT_OUTPUT_WINDOW / 4)
#define INPUT_MAX	 (1u << 20) /* standard input that waits */
#define INPUT_LOW	 (64u << 10)
#define KILL_PATIENCE_MS 5000
#define SURPLUS_MAX	 16
#define PTY_WEIGHT	 8
#define OFFSET_MAX	 (1ull << 62) /* of output */

/* --- life --- */

struct process *process_ref(struct process *process)
{
	atomic_fetch_add(&process->refs, 1);
	return process;
}

void process_unref(struct process *process)
{
	if (!process || atomic_fetch_sub(&process->refs, 1) > 1)
		return;
	buf_fini(&process->input);
	output_log_unref(process->log);
	process_record_fini(&process->record);
	link_unref(process->link);
	sandbox_unref(process->sandbox);
	pthread_mutex_destroy(&process->lock);
	pthread_mutex_destroy(&process->row);
	free(process);
}

struct process *process_make(struct sandbox *sandbox, struct link *link)
{
	struct process *process = mem_new(sizeof(*process));

	process->refs = 1;
	process->sandbox = sandbox_ref(sandbox);
	process->link = link;
	process->input = BUF_INIT(INPUT_MAX);
	process_record_init(&process->record);
	memcpy(process->record.sandbox_id, sandbox->id, sizeof(process->record.sandbox_id));
	pthread_mutex_init(&process->lock, NULL);
	pthread_mutex_init(&process->row, NULL);
	return process;
}

void process_read(struct process *process, struct process_record *ret_record)
{
	pthread_mutex_lock(&process->lock);
	process_record_copy(ret_record, &process->record);
	pthread_mutex_unlock(&process->lock);
}

struct output_log *process_log(struct process *process)
{
	return process->log;
}

static bool has_survivors(struct process *process)
{
	bool has;

	pthread_mutex_lock(&process->lock);
	has = process->record.survivors > 0;
	pthread_mutex_unlock(&process->lock);
	return has;
}

bool process_watch(struct process *process, const struct process_events *events, void *arg)
{
	return audience_add(process, events, arg);
}

void process_unwatch(struct process *process, void *arg)
{
	audience_remove(process, arg);
}

/* --- to the agent --- */

/* A frame that cannot be sent means that the link is gone, and its loss ends the process. */
static void tell(struct process *process, uint16_t kind, const void *payload, size_t len)
{
	int r = link_send(process->link, kind, process->record.number, payload, len, -1);

	if (r < 0 && r != -EPIPE)
		log_warning("sandbox %s: frame %u not sent: %s", process->sandbox->id, kind,
			strerror(-r));
}

static void send_signal(struct process *process, int signal_number, bool whole_tree)
{
	struct buf payload = BUF_INIT(16);

	pack_u32(&payload, (uint32_t)signal_number);
	pack_u8(&payload, whole_tree);
	tell(process, AGENT_SIGNAL, payload.data, payload.len);
	buf_fini(&payload);
}

void process_kill(struct process *process, bool whole_tree)
{
	bool now;

	pthread_mutex_lock(&process->lock);
	/* Once more does no harm: the tree of one that has ended may have survivors. */
	now = process->running;
	process->killed = true;
	pthread_mutex_unlock(&process->lock);
	if (now)
		send_signal(process, SIGKILL, whole_tree);
}

int process_signal(struct process *process, int signal_number, bool whole_tree, struct err *err)
{
	bool has_ended;

	pthread_mutex_lock(&process->lock);
	has_ended = process->ending && (!whole_tree || process->record.survivors == 0);
	pthread_mutex_unlock(&process->lock);
	if (has_ended)
		return process_has_ended(process->record.number, err);
	if (signal_number == SIGKILL)
		process_kill(process, whole_tree);
	else
		send_signal(process, signal_number, whole_tree);
	return 0;
}

int process_resize(struct process *process, uint16_t columns, uint16_t rows, struct err *err)
{
	struct buf payload = BUF_INIT(8);
	bool has_ended;

	if (!process->record.is_pty)
		return err_explain(err, ERR_CONFLICT, "not_a_terminal",
			"start it with \"pty\": true", "process p%u has no terminal",
			process->record.number);
	pthread_mutex_lock(&process->lock);
	has_ended = process->ending;
	pthread_mutex_unlock(&process->lock);
	if (has_ended)
		return process_has_ended(process->record.number, err);
	pack_u16(&payload, columns);
	pack_u16(&payload, rows);
	tell(process, AGENT_RESIZE, payload.data, payload.len);
	buf_fini(&payload);
	return 0;
}

void process_lose_survivors(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	process->record.survivors = 0;
	pthread_mutex_unlock(&process->lock);
}

void process_send_ack(struct process *process, uint64_t offset)
{
	struct buf payload = BUF_INIT(16);

	pack_u64(&payload, offset);
	tell(process, AGENT_ACK, payload.data, payload.len);
	buf_fini(&payload);
}

/* Acknowledges what was consumed, not for every few bytes. */
static void acknowledge(struct process *process)
{
	uint64_t ack = 0;

	pthread_mutex_lock(&process->lock);
	if (process->consumed - process->acked >= ACK_STEP && !process->ending)
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
	process->is_parked = false;
	due = process->consumed - process->acked;
	pthread_mutex_unlock(&process->lock);
	due = weight(process, due);
	acknowledge(process);
	process_unref(process);
	return due;
}

/* The same when it is its turn. */
static void acknowledge_in_turn(struct process *process)
{
	struct governor *governor = process->sandbox->engine->governor;
	uint64_t due;
	bool waits;

	pthread_mutex_lock(&process->lock);
	due = process->consumed - process->acked;
	waits = process->is_parked || due < ACK_STEP || process->ending;
	if (!waits)
		process->is_parked = true;
	pthread_mutex_unlock(&process->lock);
	if (waits)
		return;
	if (!governor_allows(governor, weight(process, due))) {
		governor_park(governor, go_on, process_ref(process));
		return;
	}
	pthread_mutex_lock(&process->lock);
	process->is_parked = false;
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
		acknowledge_in_turn(process);
	else
		acknowledge(process);
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

/* --- the row --- */

/* Writes what is known of a kept one. */
static void write_row(struct process *process)
{
	struct process_record record;
	struct err err;

	pthread_mutex_lock(&process->row);
	process_read(process, &record);
	if (store_process_update(process->sandbox->engine->config.store, &record, &err) < 0)
		log_error("process p%u of sandbox %s: %s", record.number, record.sandbox_id,
			err.message);
	pthread_mutex_unlock(&process->row);
	process_record_fini(&record);
}

static void write_later(void *arg)
{
	write_row(arg);
	process_unref(arg);
}

/* So that the next daemon knows it too, should this one die. */
static void note_change(struct process *process)
{
	if (process->log)
		scribe_put(process->sandbox->engine->scribe, write_later, process_ref(process));
}

/* --- standard input --- */

/* Sends what the agent has room for. The lock is held; the link's is a leaf. */
static void push_input(struct process *process)
{
	while (process->started) {
		uint64_t under_way = process->input_sent - process->input_taken;
		size_t n = AGENT_STDIN_WINDOW - (size_t)under_way;

		if (process->input_ends && process->input_sent == process->input_end) {
			process->input_ends = false;
			tell(process, AGENT_STDIN_CLOSE, NULL, 0);
		}
		if (n > process->input.len)
			n = process->input.len;
		if (process->input_ends && n > process->input_end - process->input_sent)
			n = (size_t)(process->input_end - process->input_sent);
		if (n == 0)
			break;
		tell(process, AGENT_STDIN, process->input.data, n);
		process->input_sent += n;
		buf_consume(&process->input, n);
		if (process->input.len == 0)
			buf_fini(&process->input);
	}
}

static int add_input(
	struct process *process, const void *data, size_t len, bool close, struct err *err)
{
	if (process->ending)
		return process_has_ended(process->record.number, err);
	if (!process->record.is_input_open)
		return err_explain(err, ERR_CONFLICT, "stdin_closed",
			"start it with \"stdin_open\": true",
			"standard input of process p%u is closed", process->record.number);
	if (process->input.len + len > INPUT_MAX || (close && process->input_ends))
		return err_explain(err, ERR_RATE, "stdin_full", "send it again later",
			"process p%u does not read: %zu bytes of input wait already",
			process->record.number, process->input.len);
	buf_append(&process->input, data, len);
	if (close) {
		/* A terminal goes on after an end of file: the program decides what that means. */
		process->record.is_input_open = process->record.is_pty;
		process->input_ends = true;
		process->input_end = process->input_sent + process->input.len;
	}
	push_input(process);
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
		note_change(process);
	return r;
}

/* --- the end --- */

void process_unlist(struct process *process)
{
	struct sandbox *sandbox = process->sandbox;
	bool found = false;

	pthread_mutex_lock(&sandbox->state);
	for (struct process **at = &sandbox->processes; *at; at = &(*at)->next) {
		if (*at == process) {
			*at = process->next;
			found = true;
			break;
		}
	}
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	if (found)
		process_unref(process);
}

bool process_claim_end(struct process *process, const struct process_end *end)
{
	struct alarm *timer = NULL;
	bool is_ours;

	pthread_mutex_lock(&process->lock);
	is_ours = !process->ending;
	if (is_ours) {
		struct process_record *record = &process->record;

		process->ending = true;
		process->record.is_input_open = false;
		process->end = *end;
		record->exit_code = end->exit_code;
		record->duration_us = end->duration_us;
		record->end = end->how;
		record->ended_at_ms = clock_wall_ms();
		timer = take_ptr(&process->timer);
	}
	pthread_mutex_unlock(&process->lock);
	alarm_close(timer);
	return is_ours;
}

/* Forgets the oldest that ended, so that no sandbox fills the disk with its past. */
static void forget_surplus(const struct process *latest)
{
	struct sandbox *sandbox = latest->sandbox;
	struct engine *engine = sandbox->engine;
	uint32_t numbers[SURPLUS_MAX];
	struct err err;
	auto_fd int logs_fd = -1;
	int count = store_process_surplus(engine->config.store, sandbox->id,
		engine->config.process_history, numbers, SURPLUS_MAX, &err);

	if (count <= 0 || sandbox_open_logs(sandbox, &logs_fd, &err) < 0)
		return;
	for (int i = 0; i < count; i++) {
		/* Of those that ended in the same millisecond it may not look like the last. */
		if (numbers[i] == latest->record.number)
			continue;
		if (store_process_delete(engine->config.store, sandbox->id, numbers[i], &err) < 0)
			break;
		output_log_remove(logs_fd, numbers[i]);
	}
}

static void drop_row(struct process *process)
{
	struct sandbox *sandbox = process->sandbox;
	auto_fd int logs_fd = -1;
	struct err err;

	if (!process->log)
		return;
	if (store_process_delete(
		    sandbox->engine->config.store, sandbox->id, process->record.number, &err) < 0 ||
		sandbox_open_logs(sandbox, &logs_fd, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	else
		output_log_remove(logs_fd, process->record.number);
}

/* One that was not kept, but left somebody behind, is listed from now on. One that never was is not. */
static void write_end(struct process *process)
{
	struct process_record record;
	struct err err;

	if (process->end.outcome == PROCESS_BAD_CWD || process->end.outcome == PROCESS_REFUSED) {
		drop_row(process);
	} else if (process->log) {
		write_row(process);
	} else {
		process_read(process, &record);
		if (store_process_insert(process->sandbox->engine->config.store, &record, &err) < 0)
			log_error("process p%u of sandbox %s: %s", record.number, record.sandbox_id,
				err.message);
		process_record_fini(&record);
	}
	forget_surplus(process);
}

static void report_end(struct process *process)
{
	tell(process, AGENT_FORGET, NULL, 0);
	audience_tell_ended(process);
	if (!has_survivors(process)) {
		process_unlist(process);
		return;
	}
	/* Under the lock: who looks at the list and then waits must not miss it in between. */
	pthread_mutex_lock(&process->sandbox->state);
	pthread_cond_broadcast(&process->sandbox->changed);
	pthread_mutex_unlock(&process->sandbox->state);
}

void process_conclude(struct process *process)
{
	if (process->log || has_survivors(process))
		write_end(process);
	report_end(process);
}

void process_abandon(struct process *process)
{
	const struct process_end leaving = {.exit_code = VERDICT_SIGNAL_BASE + SIGKILL,
		.how = {.reason = END_OPERATOR, .signal = SIGKILL}};

	struct alarm *timer = NULL;
	bool is_ours;

	/* The record stays as it is: it may be on its way to the database. */
	pthread_mutex_lock(&process->lock);
	is_ours = !process->ending;
	if (is_ours) {
		process->ending = true;
		process->end = leaving;
		timer = take_ptr(&process->timer);
	}
	pthread_mutex_unlock(&process->lock);
	alarm_close(timer);
	if (is_ours)
		audience_tell_ended(process);
	audience_tell_deserted(process);
}

static void conclude(void *arg)
{
	process_conclude(arg);
	process_unref(arg);
}

void process_conclude_later(struct process *process)
{
	scribe_put(process->sandbox->engine->scribe, conclude, process_ref(process));
}

/* On the reactor's thread: what has to be written down is left to the scribe. */
static void end(struct process *process, const struct process_end *how)
{
	if (!process_claim_end(process, how))
		return;
	if (process->log || has_survivors(process))
		process_conclude_later(process);
	else
		report_end(process);
}

/* --- frames --- */

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
	note_change(process);
	audience_tell_started(process, pid);
	pthread_mutex_lock(&process->lock);
	push_input(process);
	pthread_mutex_unlock(&process->lock);
	return 0;
}

/* Bytes that are new: into the log, then to whoever watches. */
static void add_output(struct process *process, int stream, const uint8_t *data, size_t len)
{
	process->offset += len;
	atomic_store(&process->sandbox->last_active_ms, clock_wall_ms());
	if (process->log)
		output_log_append(process->log, stream, data, len);
	pthread_mutex_lock(&process->lock);
	process->record.output_bytes = process->offset;
	if (process->pacers == 0)
		process->consumed = process->offset;
	pthread_mutex_unlock(&process->lock);
	audience_tell_output(process, stream, data, len);
	acknowledge_in_turn(process);
}

/* What a shell would say about a program that cannot be run. */
static void say_not_run(struct process *process, int errnum)
{
	const char *program = json_string_value(json_array_get(process->record.argv, 0));
	auto_free char *line = mem_printf("cannot run %s: %s\n", program, strerror(errnum));

	add_output(process, 2, (const uint8_t *)line, strlen(line));
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
	if (how.outcome == PROCESS_NOT_RUN)
		say_not_run(process, how.errnum);
	end(process, &how);
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
	size_t len = (size_t)(in->end - in->at);
	const uint8_t *data = in->at;

	/* An empty piece would not count against the window, however many there are. */
	if (in->bad || len == 0 || offset > OFFSET_MAX || (stream != 1 && stream != 2))
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	acked = process->acked;
	pthread_mutex_unlock(&process->lock);
	if (!process->is_adopted && offset + len - acked > AGENT_OUTPUT_WINDOW)
		return -EPROTO;
	if (meet_offset(process, offset, &data, &len) < 0)
		return -EPROTO;
	if (len > 0)
		add_output(process, stream, data, len);
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
	push_input(process);
	is_drained = process->input.len < INPUT_LOW;
	pthread_mutex_unlock(&process->lock);
	if (is_drained)
		audience_tell_drained(process);
	return 0;
}

static void leave_list(void *arg)
{
	struct process *process = arg;

	write_row(process);
	audience_tell_deserted(process);
	process_unlist(process);
	process_unref(process);
}

void process_leave_later(struct process *process)
{
	scribe_put(process->sandbox->engine->scribe, leave_list, process_ref(process));
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
	struct verdict_facts facts;
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
	verdict_reach(process, (int)status, &facts, &how);
	end(process, &how);
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

/* --- the timeout --- */

/* First the timeout: kill it. Then, if the agent does not report its end, end it without. */
static void on_timeout(void *arg)
{
	struct process *process = arg;
	struct process_end how = {.how = {.reason = END_TIMEOUT, .signal = SIGKILL},
		.exit_code = VERDICT_TIMEOUT,
		.duration_us = clock_steady_us() - process->started_us};

	if (process->timed_out) {
		end(process, &how);
		return;
	}
	process->timed_out = true;
	pthread_mutex_lock(&process->lock);
	if (process->timer)
		alarm_set(process->timer, KILL_PATIENCE_MS);
	pthread_mutex_unlock(&process->lock);
	process_kill(process, process->record.kills_tree);
}

static void timer_released(void *arg)
{
	process_unref(arg);
}

int process_start_timer(struct process *process, uint64_t ms, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&process->lock);
	if (!process->ending) {
		process_ref(process);
		r = alarm_open(process->sandbox->engine->reactor, ms, on_timeout, timer_released,
			process, &process->timer, err);
		if (r < 0)
			process_unref(process);
	}
	pthread_mutex_unlock(&process->lock);
	return r;
}

/* --- the start --- */

static void pack_strings(struct buf *out, const char *const *strings)
{
	uint32_t count = 0;

	while (strings[count])
		count++;
	pack_u32(out, count);
	for (uint32_t i = 0; i < count; i++)
		pack_str(out, strings[i]);
}

static int send_exec(
	struct process *process, const struct process_spec *spec, int cell_sock, struct err *err)
{
	struct buf payload = BUF_INIT(AGENT_DOWN_MAX);
	bool has_input = spec->input || spec->keeps_input_open;
	int r;

	pack_u32(&payload, (has_input ? AGENT_EXEC_STDIN : 0) |
				   (spec->is_pty ? AGENT_EXEC_PTY : 0) |
				   (spec->is_isolated ? AGENT_EXEC_CELL : 0));
	pack_u32(&payload, spec->uid);
	pack_u32(&payload, spec->gid);
	pack_u16(&payload, spec->columns);
	pack_u16(&payload, spec->rows);
	pack_str(&payload, spec->cwd);
	pack_strings(&payload, spec->argv);
	pack_strings(&payload, spec->env);
	if (payload.failed)
		r = err_set(err, ERR_TOO_LARGE, "command and environment exceed %u bytes",
			AGENT_DOWN_MAX);
	else
		r = link_send(process->link, AGENT_EXEC, process->record.number, payload.data,
			payload.len, cell_sock);
	if (r == -EPIPE)
		err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", process->sandbox->id);
	else if (r == -EAGAIN)
		err_set(err, ERR_UNAVAILABLE, "the agent of sandbox %s is busy",
			process->sandbox->id);
	buf_fini(&payload);
	return r;
}

/* Numbers go on where those in the database end. */
static int number_processes(struct sandbox *sandbox, struct err *err)
{
	uint32_t last = 0;
	bool is_known;
	int r;

	pthread_mutex_lock(&sandbox->state);
	is_known = sandbox->is_numbered;
	pthread_mutex_unlock(&sandbox->state);
	if (is_known)
		return 0;
	r = store_process_last(sandbox->engine->config.store, sandbox->id, &last, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	sandbox->is_numbered = true;
	if (last > sandbox->next_process)
		sandbox->next_process = last;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

static int take_number(struct process *process, struct err *err)
{
	struct sandbox *sandbox = process->sandbox;
	int r = number_processes(sandbox, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	process->record.number = ++sandbox->next_process;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

/* Lists it, unless the link was lost meanwhile: then nobody would end it. */
static int list(struct process *process, struct err *err)
{
	struct sandbox *sandbox = process->sandbox;
	int r = 0;

	pthread_mutex_lock(&sandbox->state);
	if (sandbox->link != process->link) {
		r = err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", sandbox->id);
	} else {
		process->next = sandbox->processes;
		sandbox->processes = process_ref(process);
	}
	pthread_mutex_unlock(&sandbox->state);
	return r;
}

int process_open_log(struct process *process, struct err *err)
{
	return roll_open_log(process->sandbox, process->record.number, &process->log, err);
}

int process_new(struct sandbox *sandbox, struct process **ret_process, struct err *err)
{
	struct link *link;
	int r = sandbox_use(sandbox, &link, err);

	if (r < 0)
		return r;
	r = network_need(sandbox, err);
	if (r == 0)
		*ret_process = process_make(sandbox, link);
	else
		link_unref(link);
	return r;
}

static void describe(struct process *process, const struct process_spec *spec)
{
	struct process_record *record = &process->record;

	for (size_t i = 0; spec->argv[i]; i++)
		json_array_append_new(record->argv, json_string(spec->argv[i]));
	free(record->cwd);
	record->cwd = mem_strdup(spec->cwd);
	record->uid = spec->uid;
	record->is_line = spec->is_line;
	record->is_background = spec->is_background;
	record->is_pty = spec->is_pty;
	record->is_isolated = spec->is_isolated;
	record->kills_tree = spec->kills_tree;
	record->timeout_ms = spec->timeout_ms;
	record->started_at_ms = clock_wall_ms();
	process->started_us = clock_steady_us();
	process->pacers = spec->is_paced;
	process->record.is_input_open = spec->keeps_input_open;
	process->input_ends = spec->input && !spec->keeps_input_open;
	process->input_end = spec->input_len;
	if (spec->input)
		buf_append(&process->input, spec->input, spec->input_len);
}

/* The command was sent: from now on it can be killed, and that may have been asked for already. */
static void note_running(struct process *process)
{
	bool killed;

	pthread_mutex_lock(&process->lock);
	process->running = true;
	killed = process->killed;
	pthread_mutex_unlock(&process->lock);
	if (killed)
		send_signal(process, SIGKILL, true);
}

/* Row and log, before anything can happen that would have to be written there. */
static int keep(struct process *process, struct err *err)
{
	int r = process_open_log(process, err);

	if (r == 0)
		r = store_process_insert(
			process->sandbox->engine->config.store, &process->record, err);
	return r;
}

/* It never ran; whoever takes its end speaks for it. */
static int give_up(struct process *process, int r)
{
	const struct process_end nothing = {.outcome = PROCESS_REFUSED};

	/* If somebody ended it before us, the watchers have heard of that already. */
	if (!process_claim_end(process, &nothing))
		return 0;
	drop_row(process);
	pthread_mutex_lock(&process->lock);
	process->concluded = true;
	pthread_mutex_unlock(&process->lock);
	if (process->running)
		tell(process, AGENT_FORGET, NULL, 0);
	audience_dismiss(process);
	process_unlist(process);
	return r;
}

static int make_cell(struct process *process, int *ret_sock, struct err *err)
{
	struct driver *driver = engine_driver(process->sandbox->engine);

	if (!driver->ops->cell)
		return err_explain(err, ERR_INVALID, "isolate_unsupported", NULL,
			"the driver %s cannot isolate commands", driver->ops->name);
	return driver->ops->cell(driver, process->sandbox->id, ret_sock, err);
}

int process_run(struct process *process, const struct process_spec *spec, struct err *err)
{
	auto_fd int cell_sock = -1;
	int r;

	describe(process, spec);
	r = take_number(process, err);
	if (r == 0 && spec->is_isolated)
		r = make_cell(process, &cell_sock, err);
	if (r == 0 && spec->is_kept)
		r = keep(process, err);
	if (r == 0)
		r = list(process, err);
	if (r == 0)
		r = send_exec(process, spec, cell_sock, err);
	if (r == 0) {
		note_running(process);
		if (spec->timeout_ms > 0)
			r = process_start_timer(process, spec->timeout_ms, err);
		if (r < 0)
			process_kill(process, true);
	}
	return r < 0 ? give_up(process, r) : 0;
}
