/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a process, its timeout, and what can be asked of it while it runs. What its agent reports
 * is dealt with by process_report.c, its end by process_end.c.
 */
#include "core/process.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/audience.h"
#include "core/network.h"
#include "core/process_state.h"
#include "core/roll.h"
#include "core/starter.h"
#include "core/verdict.h"
#include "wire/pack.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define KILL_PATIENCE_MS 5000

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
	starter_unref(process->starter);
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
	process->input = BUF_INIT(PROCESS_INPUT_MAX);
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

bool process_has_survivors(struct process *process)
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

void process_tell(struct process *process, uint16_t kind, const void *payload, size_t len)
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
	process_tell(process, AGENT_SIGNAL, payload.data, payload.len);
	buf_fini(&payload);
}

void process_kill(struct process *process, bool whole_tree)
{
	bool now;

	pthread_mutex_lock(&process->lock);
	/* Once more does no harm: the tree of one that has ended may have survivors. */
	now = process->running;
	process->killed = true;
	process->killed_tree |= whole_tree;
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
	process_tell(process, AGENT_RESIZE, payload.data, payload.len);
	buf_fini(&payload);
	return 0;
}

void process_lose_survivors(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	process->record.survivors = 0;
	pthread_mutex_unlock(&process->lock);
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
		process_come_to_end(process, &how);
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
	int r = 0;

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
	if (!payload.failed)
		r = link_send(process->link, AGENT_EXEC, process->record.number, payload.data,
			payload.len, cell_sock);
	if (payload.failed)
		r = err_set(err, ERR_TOO_LARGE, "command and environment exceed %u bytes",
			AGENT_DOWN_MAX);
	else if (r == -EPIPE)
		err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", process->sandbox->id);
	else if (r == -EAGAIN)
		err_set(err, ERR_UNAVAILABLE, "the agent of sandbox %s is busy",
			process->sandbox->id);
	else if (r < 0)
		err_from(err, r, "give a command to sandbox %s", process->sandbox->id);
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

void process_note_running(struct process *process)
{
	bool killed, whole_tree;

	pthread_mutex_lock(&process->lock);
	process->running = true;
	killed = process->killed;
	whole_tree = process->killed_tree;
	pthread_mutex_unlock(&process->lock);
	if (killed)
		send_signal(process, SIGKILL, whole_tree);
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
	process_drop_row(process);
	pthread_mutex_lock(&process->lock);
	process->concluded = true;
	pthread_mutex_unlock(&process->lock);
	if (process->running)
		process_tell(process, AGENT_FORGET, NULL, 0);
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
		process_note_running(process);
		if (spec->timeout_ms > 0)
			r = process_start_timer(process, spec->timeout_ms, err);
		if (r < 0)
			process_kill(process, true);
	}
	return r < 0 ? give_up(process, r) : 0;
}
