/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/link.h"
#include "core/sandbox_state.h"
#include "wire/pack.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACK_STEP	  (64u << 10)
#define KILL_PATIENCE_MS  5000
#define EXIT_TIMEOUT	  124
#define SHELL_SIGNAL_BASE 128

struct process {
	atomic_int refs;
	struct process *next; /* in sandbox.processes; under sandbox.state */
	struct sandbox *sandbox;
	struct link *link;
	uint32_t id;
	const struct process_sink *sink;
	void *arg;
	uint64_t started_us;

	/* The reactor's thread only. */
	uint64_t offset; /* of the next output byte */
	struct buf input;
	uint64_t input_sent, input_taken;
	bool input_open;
	int timer_fd;
	bool started, timed_out;

	pthread_mutex_t lock; /* what follows */
	uint64_t consumed, acked;
	struct watch *timer;
	bool running, ended, killed;
};

static struct process *process_ref(struct process *process)
{
	atomic_fetch_add(&process->refs, 1);
	return process;
}

void process_unref(struct process *process)
{
	if (!process || atomic_fetch_sub(&process->refs, 1) > 1)
		return;
	buf_fini(&process->input);
	fd_close(process->timer_fd);
	link_unref(process->link);
	sandbox_unref(process->sandbox);
	pthread_mutex_destroy(&process->lock);
	free(process);
}

/* A frame that cannot be sent means that the link is gone, and its loss ends the process. */
static void tell(struct process *process, uint16_t kind, const void *payload, size_t len)
{
	int r = link_send(process->link, kind, process->id, payload, len, -1);

	if (r < 0 && r != -EPIPE)
		log_warning("sandbox %s: frame %u not sent: %s", process->sandbox->id, kind,
			strerror(-r));
}

static void send_signal(struct process *process, uint32_t signal_number)
{
	struct buf payload = BUF_INIT(16);

	pack_u32(&payload, signal_number);
	pack_u8(&payload, 1);
	tell(process, AGENT_SIGNAL, payload.data, payload.len);
	buf_fini(&payload);
}

void process_kill(struct process *process)
{
	bool now;

	pthread_mutex_lock(&process->lock);
	now = process->running && !process->killed && !process->ended;
	process->killed = true;
	pthread_mutex_unlock(&process->lock);
	if (now)
		send_signal(process, SIGKILL);
}

void process_consumed(struct process *process, size_t len)
{
	struct buf payload = BUF_INIT(16);
	uint64_t ack = 0;

	pthread_mutex_lock(&process->lock);
	process->consumed += len;
	if (process->consumed - process->acked >= ACK_STEP && !process->ended)
		ack = process->acked = process->consumed;
	pthread_mutex_unlock(&process->lock);
	if (!ack)
		return;
	pack_u64(&payload, ack);
	tell(process, AGENT_ACK, payload.data, payload.len);
	buf_fini(&payload);
}

/* --- the end --- */

static bool unlist(struct process *process)
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
	pthread_mutex_unlock(&sandbox->state);
	return found;
}

/* Reports the end, once: whoever takes the process off the list. Drops the list's reference. */
static void end(struct process *process, const struct process_end *how)
{
	struct watch *timer;

	if (!unlist(process))
		return;
	pthread_mutex_lock(&process->lock);
	process->ended = true;
	timer = take_ptr(&process->timer);
	pthread_mutex_unlock(&process->lock);
	watch_close(timer);
	process->sink->ended(process->arg, how);
	process_unref(process);
}

/* SIGKILL that we did not send: did the kernel do it for want of memory? */
static bool was_oom(struct process *process)
{
	struct sandbox *sandbox = process->sandbox;
	struct driver *driver = engine_driver(sandbox->engine);
	struct driver_stats stats;
	struct err err;
	bool oom;

	if (driver->ops->stats(driver, sandbox->id, &stats, &err) < 0)
		return false;
	pthread_mutex_lock(&sandbox->state);
	oom = stats.oom_kills > sandbox->oom_kills;
	sandbox->oom_kills = stats.oom_kills;
	pthread_mutex_unlock(&sandbox->state);
	return oom;
}

static void judge(struct process *process, int status, struct process_end *how)
{
	bool killed;

	pthread_mutex_lock(&process->lock);
	killed = process->killed;
	pthread_mutex_unlock(&process->lock);
	if (WIFSIGNALED(status)) {
		how->signal = WTERMSIG(status);
		how->exit_code = SHELL_SIGNAL_BASE + how->signal;
		how->reason = END_SIGNAL;
	} else {
		how->exit_code = WEXITSTATUS(status);
		how->reason = END_EXITED;
	}
	if (process->timed_out) {
		how->reason = END_TIMEOUT;
		how->exit_code = EXIT_TIMEOUT;
	} else if (killed && how->signal == SIGKILL) {
		how->reason = END_KILLED;
	} else if (how->signal == SIGKILL && was_oom(process)) {
		how->reason = END_OOM;
	}
}

void process_end_all(struct sandbox *sandbox, enum end_reason reason)
{
	for (;;) {
		struct process_end how = {.reason = reason,
			.signal = SIGKILL,
			.exit_code = SHELL_SIGNAL_BASE + SIGKILL};
		struct process *process;

		pthread_mutex_lock(&sandbox->state);
		process = sandbox->processes ? process_ref(sandbox->processes) : NULL;
		pthread_mutex_unlock(&sandbox->state);
		if (!process)
			return;
		how.duration_us = clock_steady_us() - process->started_us;
		end(process, &how);
		process_unref(process);
	}
}

/* --- frames --- */

/* Standard input goes out as fast as the command takes it, within the agent's window. */
static void push_input(struct process *process)
{
	while (process->input_sent < process->input.len &&
		process->input_sent - process->input_taken < AGENT_STDIN_WINDOW) {
		size_t room =
			AGENT_STDIN_WINDOW - (size_t)(process->input_sent - process->input_taken);
		size_t left = process->input.len - (size_t)process->input_sent;
		size_t n = left < room ? left : room;

		tell(process, AGENT_STDIN, process->input.data + process->input_sent, n);
		process->input_sent += n;
	}
	if (process->input_open && process->input_sent == process->input.len) {
		process->input_open = false;
		tell(process, AGENT_STDIN_CLOSE, NULL, 0);
	}
}

static int on_started(struct process *process, struct unpack *in)
{
	uint32_t pid = unpack_u32(in);

	if (!unpack_done(in) || process->started)
		return -EPROTO;
	process->started = true;
	process->sink->started(process->arg, pid);
	push_input(process);
	return 0;
}

static int on_failed(struct process *process, struct unpack *in)
{
	uint8_t stage = unpack_u8(in);
	struct process_end how = {
		.errnum = (int)unpack_u32(in), .reason = END_EXITED, .exit_code = 126};

	if (!unpack_done(in) || process->started || stage < AGENT_STAGE_SETUP ||
		stage > AGENT_STAGE_EXEC)
		return -EPROTO;
	how.outcome = stage == AGENT_STAGE_CWD	  ? PROCESS_BAD_CWD
		      : stage == AGENT_STAGE_EXEC ? PROCESS_NOT_RUN
						  : PROCESS_REFUSED;
	if (how.errnum == ENOENT || how.errnum == ENOTDIR)
		how.exit_code = 127;
	how.duration_us = clock_steady_us() - process->started_us;
	end(process, &how);
	return 0;
}

static int on_output(struct process *process, struct unpack *in)
{
	uint64_t offset = unpack_u64(in), outstanding;
	uint8_t stream = unpack_u8(in);
	size_t len = (size_t)(in->end - in->at);

	/* An empty piece would not count against the window, however many there are. */
	if (in->bad || len == 0 || offset != process->offset || (stream != 1 && stream != 2))
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	outstanding = offset + len - process->acked;
	pthread_mutex_unlock(&process->lock);
	if (outstanding > AGENT_OUTPUT_WINDOW)
		return -EPROTO;
	process->offset += len;
	process->sink->output(process->arg, stream, in->at, len);
	return 0;
}

static int on_input_ack(struct process *process, struct unpack *in)
{
	uint64_t taken = unpack_u64(in);

	if (!unpack_done(in) || taken < process->input_taken || taken > process->input_sent)
		return -EPROTO;
	process->input_taken = taken;
	push_input(process);
	return 0;
}

static int on_exited(struct process *process, struct unpack *in)
{
	struct process_end how = {.outcome = PROCESS_RAN};
	uint32_t status = unpack_u32(in);
	uint64_t end_offset = unpack_u64(in);

	how.cpu_us = unpack_u64(in);
	how.peak_memory_bytes = unpack_u64(in);
	how.duration_us = unpack_u64(in);
	if (!unpack_done(in) || end_offset != process->offset)
		return -EPROTO;
	judge(process, (int)status, &how);
	tell(process, AGENT_FORGET, NULL, 0);
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
	{AGENT_EXITED, on_exited},
};

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
	for (process = sandbox->processes; process && process->id != frame->id;)
		process = process->next;
	if (process)
		process_ref(process);
	pthread_mutex_unlock(&sandbox->state);
	/* One that was given up on, or belonged to a daemon before us. */
	if (!process)
		return 0;
	r = takers[i].take(process, &in);
	process_unref(process);
	return r;
}

/* --- the start --- */

static void set_timer(int fd, uint64_t ms)
{
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(ms / 1000),
					  .tv_nsec = (long)(ms % 1000) * 1000000}};

	timerfd_settime(fd, 0, &when, NULL);
}

/* First the timeout: kill it. Then, if the agent does not report its end, end it without. */
static void on_timer(void *arg, uint32_t events)
{
	struct process *process = arg;
	uint64_t expirations;

	(void)events;
	if (read(process->timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	if (!process->timed_out) {
		process->timed_out = true;
		set_timer(process->timer_fd, KILL_PATIENCE_MS);
		process_kill(process);
	} else {
		struct process_end how = {.reason = END_TIMEOUT,
			.signal = SIGKILL,
			.exit_code = EXIT_TIMEOUT,
			.duration_us = clock_steady_us() - process->started_us};

		end(process, &how);
	}
}

static void timer_released(void *arg)
{
	process_unref(arg);
}

static int start_timer(struct process *process, uint64_t timeout_ms, struct err *err)
{
	int r = 0;

	process->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (process->timer_fd < 0)
		return err_sys(err, "make a timer");
	set_timer(process->timer_fd, timeout_ms);
	pthread_mutex_lock(&process->lock);
	if (!process->ended) {
		process_ref(process);
		r = watch_open(process->sandbox->engine->reactor, process->timer_fd, EPOLLIN,
			on_timer, timer_released, process, &process->timer, err);
		if (r < 0)
			process_unref(process);
	}
	pthread_mutex_unlock(&process->lock);
	return r;
}

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
	int r;

	pack_u32(&payload, spec->input ? AGENT_EXEC_STDIN : 0);
	pack_u32(&payload, spec->uid);
	pack_u32(&payload, spec->gid);
	pack_u16(&payload, 80);
	pack_u16(&payload, 24);
	pack_str(&payload, spec->cwd);
	pack_strings(&payload, spec->argv);
	pack_strings(&payload, spec->env);
	if (payload.failed)
		r = err_set(err, ERR_TOO_LARGE, "command and environment exceed %u bytes",
			AGENT_DOWN_MAX);
	else
		r = link_send(
			process->link, AGENT_EXEC, process->id, payload.data, payload.len, -1);
	if (r == -EPIPE)
		err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", process->sandbox->id);
	else if (r == -EAGAIN)
		err_set(err, ERR_UNAVAILABLE, "the agent of sandbox %s is busy",
			process->sandbox->id);
	buf_fini(&payload);
	return r;
}

static struct process *make_process(
	struct sandbox *sandbox, struct link *link, const struct process_sink *sink, void *arg)
{
	struct process *process = mem_new(sizeof(*process));

	process->refs = 1;
	process->sandbox = sandbox_ref(sandbox);
	process->link = link;
	process->sink = sink;
	process->arg = arg;
	process->timer_fd = -1;
	pthread_mutex_init(&process->lock, NULL);
	return process;
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
		process->id = ++sandbox->next_process;
		process->next = sandbox->processes;
		sandbox->processes = process_ref(process);
	}
	pthread_mutex_unlock(&sandbox->state);
	return r;
}

int process_new(struct sandbox *sandbox, const struct process_sink *sink, void *arg,
	struct process **ret_process, struct err *err)
{
	struct link *link;
	int r = sandbox_use(sandbox, &link, err);

	if (r == 0)
		*ret_process = make_process(sandbox, link, sink, arg);
	return r;
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
		send_signal(process, SIGKILL);
}

int process_run(struct process *process, const struct process_spec *spec, struct err *err)
{
	int r;

	process->input = BUF_INIT(spec->input_len + 1);
	process->input_open = spec->input != NULL;
	if (spec->input)
		buf_append(&process->input, spec->input, spec->input_len);
	process->started_us = clock_steady_us();
	r = list(process, err);
	if (r < 0)
		return r;
	r = send_exec(process, spec, err);
	if (r == 0) {
		note_running(process);
		if (spec->timeout_ms > 0)
			r = start_timer(process, spec->timeout_ms, err);
		if (r < 0)
			process_kill(process);
	}
	/* If somebody took it off the list before us, the sink has heard of its end already. */
	if (r < 0 && unlist(process)) {
		process_unref(process);
		return r;
	}
	return 0;
}
