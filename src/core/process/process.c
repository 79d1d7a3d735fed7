/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a process, its timeout, and what can be asked of it while it runs. What its agent reports
 * is dealt with by process_report.c, its end by process_end.c.
 */
#include "core/process/process.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "core/engine/capability.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_network.h"
#include "core/output/output_segment.h"
#include "core/process/exit_reason.h"
#include "core/process/process_state.h"
#include "core/process/process_watchers.h"
#include "core/process/sandbox_output.h"
#include "model/access/owner.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
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
	share_give_back(process->share);
	process_record_fini(&process->record);
	agent_link_unref(process->link);
	if (process->starter)
		process->starter->unref(process->start_command);
	sandbox_unref(process->sandbox);
	pthread_mutex_destroy(&process->lock);
	pthread_mutex_destroy(&process->row);
	free(process);
}

struct process *process_make(struct sandbox *sandbox, struct agent_link *link)
{
	struct process *process = mem_new(sizeof(*process));

	process->refs = 1;
	process->sandbox = sandbox_ref(sandbox);
	process->link = link;
	process->input = BUF_INIT(PROCESS_INPUT_MAX + PROCESS_RUNNER_MAX);
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
	return process_watchers_add(process, events, arg);
}

void process_unwatch(struct process *process, void *arg)
{
	process_watchers_remove(process, arg);
}

/* --- to the agent --- */

void process_tell(struct process *process, uint16_t kind, const void *payload, size_t len)
{
	int r = agent_link_send(process->link, kind, process->record.number, payload, len);

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
		.exit_code = EXIT_REASON_TIMEOUT,
		.duration_us = clock_steady_us() - process->started_us};

	if (process->timed_out) {
		exit_reason_describe_timeout(process, &how);
		process_come_to_end(process, &how);
		return;
	}
	process->timed_out = true;
	pthread_mutex_lock(&process->lock);
	if (process->timer)
		timer_set(process->timer, KILL_PATIENCE_MS);
	pthread_mutex_unlock(&process->lock);
	process_kill(process, process->record.kills_tree);
}

static void timer_released(void *arg)
{
	process_unref(arg);
}

void process_start_timer(struct process *process, uint64_t ms)
{
	pthread_mutex_lock(&process->lock);
	if (!process->ending) {
		process->timer = timer_open(process->sandbox->engine->loop, on_timeout,
			timer_released, process_ref(process));
		timer_set(process->timer, ms);
	}
	pthread_mutex_unlock(&process->lock);
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

static int send_exec(struct process *process, const struct process_spec *spec, struct err *err)
{
	struct buf payload = BUF_INIT(AGENT_DOWN_MAX);
	char most[FORMAT_SIZE_LEN];
	bool has_input = spec->input || spec->keeps_input_open;
	int r = 0;

	pack_u32(&payload, (has_input ? AGENT_EXEC_STDIN : 0) |
				   (spec->is_pty ? AGENT_EXEC_PTY : 0) |
				   (spec->has_result ? AGENT_EXEC_RESULT : 0) |
				   (spec->is_isolated ? AGENT_EXEC_ISOLATED : 0));
	pack_u32(&payload, spec->uid);
	pack_u32(&payload, spec->gid);
	pack_u16(&payload, spec->columns);
	pack_u16(&payload, spec->rows);
	pack_str(&payload, spec->cwd);
	pack_strings(&payload, spec->argv);
	pack_strings(&payload, spec->env);
	pack_u32(&payload, spec->groups.count);
	for (uint32_t i = 0; i < spec->groups.count; i++)
		pack_u32(&payload, spec->groups.list[i]);
	if (!payload.failed)
		r = agent_link_send(process->link, AGENT_EXEC, process->record.number, payload.data,
			payload.len);
	format_size(AGENT_DOWN_MAX, most);
	if (payload.failed)
		r = err_set(err, ERR_TOO_LARGE, "command and environment exceed %s", most);
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

/* The highest number of which there is output. */
static uint32_t last_logged(const struct sandbox *sandbox)
{
	auto_fd int fd = openat(sandbox->engine->config.logs_fd, sandbox->id,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? 0 : output_segment_last(fd);
}

/* Numbers go on where those in the database end; or where output ends that an older database does not know
 * of, which is not that of a new process. */
static int number_processes(struct sandbox *sandbox, struct err *err)
{
	uint32_t last = 0, logged;
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
	logged = last_logged(sandbox);
	if (logged > last)
		last = logged;
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

/* Its log needs descriptors, of which its owner has a share. One that runs already goes on without a place. */
static int take_place(struct process *process, struct err *err)
{
	const struct owner *owner = &process->sandbox->record.owner;
	int r = share_pool_take(process->sandbox->engine->processes, owner_key(owner),
		owner_is_operator(owner), &process->share);

	if (r == 0 || process->is_adopted)
		return 0;
	return err_explain(err, ERR_RATE, "too_many_processes",
		"end processes that you do not need",
		r == -EDQUOT ? "as many processes run in your sandboxes as one owner may have"
			     : "as many processes run as there may be");
}

int process_open_log(struct process *process, struct err *err)
{
	int r = take_place(process, err);

	if (r < 0)
		return r;
	return sandbox_output_open(process->sandbox, process->record.number, &process->log, err);
}

int process_new(struct sandbox *sandbox, struct process **ret_process, struct err *err)
{
	struct agent_link *link;
	int r = sandbox_use(sandbox, &link, err);

	if (r < 0)
		return r;
	r = sandbox_network_need(sandbox, err);
	if (r == 0)
		*ret_process = process_make(sandbox, link);
	else
		agent_link_unref(link);
	return r;
}

static void describe(struct process *process, const struct process_spec *spec)
{
	struct process_record *record = &process->record;
	json_t *argv = record->argv;

	process->is_titled = spec->title;
	if (spec->title)
		json_array_append_new(argv, json_string(spec->title));
	for (size_t i = 0; spec->argv[i] && !spec->title; i++)
		json_array_append_new(argv, json_string(spec->argv[i]));
	record->argv = process_argv_shorten(argv, PROCESS_ARGV_MAX, &record->is_argv_cut);
	json_decref(argv);
	free(record->cwd);
	record->cwd = mem_strdup(spec->cwd);
	record->uid = spec->uid;
	record->is_line = spec->is_line;
	record->is_background = spec->is_background;
	record->keeps_awake = spec->keeps_awake;
	record->is_pty = spec->is_pty;
	record->danger = spec->danger;
	record->is_isolated = spec->is_isolated;
	record->kills_tree = spec->kills_tree;
	record->timeout_ms = spec->timeout_ms;
	record->started_at_ms = store_clock_ms(engine_store(process->sandbox->engine));
	process->started_us = clock_steady_us();
	process->pacers = spec->is_paced;
	process->has_result = spec->has_result;
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
		r = fail_point_check("process.log_opened", err);
	if (r == 0)
		r = store_process_insert(
			process->sandbox->engine->config.store, &process->record, err);
	fail_point("process.row_inserted");
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
	process_watchers_dismiss(process);
	process_unlist(process);
	return r;
}

static int prepare_isolated(struct process *process, struct err *err)
{
	struct driver *driver = engine_driver(process->sandbox->engine);

	int r = capability_need(driver, DRIVER_ISOLATED_EXEC, err);

	return r < 0 ? r
		     : driver->ops->isolated(
			       driver, process->sandbox->id, process->record.number, err);
}

int process_run(struct process *process, const struct process_spec *spec, struct err *err)
{
	int r;

	describe(process, spec);
	r = take_number(process, err);
	if (r == 0 && spec->is_isolated)
		r = prepare_isolated(process, err);
	if (r == 0 && spec->is_kept)
		r = keep(process, err);
	if (r == 0)
		r = list(process, err);
	if (r == 0)
		r = send_exec(process, spec, err);
	if (spec->is_kept)
		fail_point("process.sent");
	if (r < 0)
		return give_up(process, r);
	process_note_running(process);
	if (spec->timeout_ms > 0)
		process_start_timer(process, spec->timeout_ms);
	return 0;
}
