/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/init.h"

#include "agent/files/helper.h"
#include "agent/files/request/file.h"
#include "agent/link/control.h"
#include "agent/link/daemon_link.h"
#include "agent/link/payload.h"
#include "agent/link/port_forward.h"
#include "agent/link/watch.h"
#include "agent/machine/virtual_proc.h"
#include "agent/process/port_scan.h"
#include "agent/process/process.h"
#include "agent/process/process_tree.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS_MAX 16

/* What commands get when a container is ended; its engine kills it after 10 s, as a rule. */
#define TERM_GRACE_MS 5000

struct init {
	int epoll_fd;
	int signal_fd;
	int lifeline_fd;
	bool ends; /* leave the loop */
	bool shutting_down;
	uint64_t deadline_ms; /* of the shutdown */
	struct daemon_link link;
	struct control control;
	struct listener listener;
	struct port_forwards forwards;
	struct process_table processes;
	struct helper_table helpers;
	struct virtual_proc machine;
};

static int handle_attach(struct init *init, const struct frame *frame)
{
	uint32_t version;
	int r = payload_u32_parse(frame, &version);

	if (r < 0)
		return r;
	/* The daemon decides whether it can speak with our version. */
	init->link.attached = true;
	process_resume_all(&init->processes);
	return 0;
}

static int handle_exec(struct init *init, const struct frame *frame)
{
	return process_exec(&init->processes, frame);
}

static int handle_stdin(struct init *init, const struct frame *frame)
{
	return process_stdin(&init->processes, frame);
}

static int handle_stdin_close(struct init *init, const struct frame *frame)
{
	return process_stdin_close(&init->processes, frame);
}

static int handle_signal(struct init *init, const struct frame *frame)
{
	return process_signal(&init->processes, frame);
}

static int handle_resize(struct init *init, const struct frame *frame)
{
	return process_resize(&init->processes, frame);
}

static int handle_ack(struct init *init, const struct frame *frame)
{
	return process_ack(&init->processes, frame);
}

static int handle_forget(struct init *init, const struct frame *frame)
{
	return process_forget(&init->processes, frame);
}

static int handle_usage(struct init *init, const struct frame *frame)
{
	return process_tell_usage(&init->processes, frame);
}

/* A stopped process would not act on its SIGTERM. */
static void signal_all(void)
{
	static const int signals[] = {SIGTERM, SIGCONT};

	for (size_t i = 0; i < array_len(signals); i++) {
		/* Where it is not PID 1 (a test), -1 would mean the whole machine. */
		if (getpid() == 1)
			kill(-1, signals[i]);
		else
			process_tree_signal_own(signals[i]);
	}
}

static void shut_down(struct init *init, uint32_t grace_ms)
{
	if (init->shutting_down)
		return;
	init->shutting_down = true;
	init->deadline_ms = clock_steady_ms() + grace_ms;
	init->processes.closed = true;
	signal_all();
}

static int handle_shutdown(struct init *init, const struct frame *frame)
{
	uint32_t grace_ms;
	int r = payload_u32_parse(frame, &grace_ms);

	if (r == 0)
		shut_down(init, grace_ms);
	return r;
}

typedef int frame_handler(struct init *init, const struct frame *frame);

static frame_handler *const handlers[] = {
	[AGENT_ATTACH] = handle_attach,
	[AGENT_EXEC] = handle_exec,
	[AGENT_STDIN] = handle_stdin,
	[AGENT_STDIN_CLOSE] = handle_stdin_close,
	[AGENT_SIGNAL] = handle_signal,
	[AGENT_RESIZE] = handle_resize,
	[AGENT_ACK] = handle_ack,
	[AGENT_FORGET] = handle_forget,
	[AGENT_SHUTDOWN] = handle_shutdown,
	[AGENT_USAGE] = handle_usage,
};

/* AGENT_ATTACH must be the first frame, and must come only once. */
static int handle_frame(void *context, const struct frame *frame)
{
	struct init *init = context;

	if (frame->kind >= array_len(handlers) || !handlers[frame->kind])
		return -EPROTO;
	if ((frame->kind == AGENT_ATTACH) == init->link.attached)
		return -EPROTO;
	return handlers[frame->kind](init, frame);
}

/* --- channels --- */

static void serve_file(struct init *init, int channel, const struct frame *frame)
{
	struct payload_file request;
	int r = payload_file_parse(frame, &request);

	if (r < 0)
		return;
	r = helper_start(&init->helpers, &init->processes.base.oom,
		&(struct helper_task){file_serve, &request, request.op == AGENT_FILE_WATCH},
		channel);
	if (r < 0)
		file_refuse(channel, -r);
	payload_file_fini(&request);
}

static void serve_ports(struct init *init, int channel, const struct frame *frame)
{
	struct port_scan_query query = {
		.processes = &init->processes, .own_port = listener_port(&init->listener)};

	/* If no helper starts, the end of the channel says so. */
	if (payload_u64_parse(frame, &query.known) == 0)
		(void)!helper_start(&init->helpers, &init->processes.base.oom,
			&(struct helper_task){port_scan_serve, &query, false}, channel);
}

/* What cannot be parsed ends its channel. */
static void serve_channel(void *context, int channel, const struct frame *frame)
{
	if (frame->kind == AGENT_FILE)
		serve_file(context, channel, frame);
	else if (frame->kind == AGENT_PORTS)
		serve_ports(context, channel, frame);
}

/* --- an agent that listens --- */

static void take_link(void *context, int fd)
{
	struct init *init = context;

	daemon_link_open(&init->link, fd);
}

static void take_channel(void *context, int fd, const struct frame *first)
{
	serve_channel(context, fd, first);
	fd_close(fd);
}

static void take_dial(void *context, int fd, const struct proof_claim *claim)
{
	struct init *init = context;

	port_forward_open(&init->forwards, fd, claim);
}

static const struct listener_takers takers = {take_link, take_channel, take_dial};

/* --- events --- */

static void lifeline_ready(struct init *init)
{
	int fds[FDPASS_MAX];
	char packet[1 + sizeof(cpu_set_t)];
	ssize_t n = fdpass_recv(init->lifeline_fd, packet, sizeof(packet), fds, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EPROTO)
		return;
	if (n <= 0) {
		init->ends = true;
		return;
	}
	if (packet[0] == AGENT_BIND) {
		struct affinity *affinity = &init->processes.base.affinity;

		affinity->is_bound = n == sizeof(packet);
		if (affinity->is_bound)
			memcpy(&affinity->set, packet + 1, sizeof(affinity->set));
	}
	if (packet[0] == AGENT_LINK && fds[0] >= 0 && fds[1] >= 0) {
		daemon_link_open(&init->link, take_fd(&fds[0]));
		control_open(&init->control, take_fd(&fds[1]));
	}
	for (size_t i = 0; i < FDPASS_MAX; i++)
		fd_close(fds[i]);
}

static void link_ready(struct init *init, uint32_t events)
{
	if (events & EPOLLOUT) {
		daemon_link_resume(&init->link);
		process_send_all(&init->processes);
	}
	if (events & ~(uint32_t)EPOLLOUT)
		daemon_link_receive(&init->link, handle_frame, init);
}

/*
 * Whether a SIGTERM, which only an agent that listens gets, is that of the container's engine. The
 * kernel names no sender to PID 1 that is outside of its namespace, and nobody inside can claim
 * that (SI_USER is the kernel's own word).
 */
static bool is_told_to_end(const struct signalfd_siginfo *info)
{
	return info->ssi_signo == SIGTERM && info->ssi_code == SI_USER &&
	       (info->ssi_pid == 0 || getpid() != 1);
}

/* Besides its own children, PID 1 reaps every orphan of the sandbox. */
static void children_ready(struct init *init)
{
	struct signalfd_siginfo info = {0};
	struct rusage usage;
	int status;
	pid_t pid;

	if (read(init->signal_fd, &info, sizeof(info)) < 0 && errno != EAGAIN)
		return;
	if (is_told_to_end(&info))
		shut_down(init, TERM_GRACE_MS);
	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage)) > 0) {
		/* Unsigned: musl's macro multiplies what it is given, beyond an int from exit code 128 on. */
		if (WIFSTOPPED((unsigned int)status))
			helper_stopped(&init->helpers, pid);
		else if (!process_end(&init->processes, pid, status, &usage))
			helper_end(&init->helpers, pid);
	}
}

static void dispatch(struct init *init, const struct epoll_event *event)
{
	enum watch_role role = watch_role(event->data.u64);

	switch (role) {
	case WATCH_LIFELINE:
		lifeline_ready(init);
		break;
	case WATCH_LINK:
		link_ready(init, event->events);
		break;
	case WATCH_CONTROL:
		control_receive(&init->control);
		break;
	case WATCH_CHILDREN:
		children_ready(init);
		break;
	case WATCH_MACHINE:
		virtual_proc_ready(&init->machine);
		break;
	case WATCH_DENIALS:
		/* Answers one call in each turn of the loop, so that a flood of them leaves time
		 * for the rest. A hangup is no call, and receiving would block for ever: the
		 * isolated command's end follows. */
		if (event->events & EPOLLIN)
			process_deny(&init->processes, watch_id(event->data.u64));
		break;
	case WATCH_LISTENER:
		listener_ready(&init->listener);
		break;
	case WATCH_ARRIVAL:
		listener_receive(&init->listener, watch_id(event->data.u64));
		break;
	case WATCH_FORWARD_DAEMON:
	case WATCH_FORWARD_PORT:
		port_forward_ready(
			&init->forwards, watch_id(event->data.u64), role == WATCH_FORWARD_DAEMON);
		break;
	case WATCH_STDIN:
	case WATCH_STDOUT:
	case WATCH_STDERR:
	case WATCH_RESULT:
	case WATCH_TERMINAL:
	case WATCH_GROUP:
	case WATCH_ISOLATED:
		process_ready(&init->processes, role, watch_id(event->data.u64), event->events);
		break;
	}
}

/* The sooner of two times to wait, where -1 is for ever. */
static int sooner(int a, int b)
{
	return b < 0 || (a >= 0 && a < b) ? a : b;
}

/* How long epoll may wait: for ever, or until something or the end of a shutdown is due. */
static int timeout_ms(const struct init *init)
{
	int reconnect = sooner(
		process_patience_ms(&init->processes), virtual_proc_patience_ms(&init->machine));
	uint64_t now, left;

	reconnect = sooner(reconnect, listener_patience_ms(&init->listener));
	reconnect = sooner(reconnect, port_forward_patience_ms(&init->forwards));
	if (!init->shutting_down)
		return reconnect;
	now = clock_steady_ms();
	left = now < init->deadline_ms ? init->deadline_ms - now : 0;
	if (reconnect < 0 || left < (uint64_t)reconnect)
		reconnect = left < 1000 ? (int)left : 1000;
	return reconnect;
}

static bool is_shut_down(const struct init *init)
{
	siginfo_t info;

	if (!init->shutting_down)
		return false;
	return clock_steady_ms() >= init->deadline_ms ||
	       (!process_has_isolated(&init->processes) &&
		       waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD);
}

/*
 * One that was built ahead has time before its link comes: for the group of its first command, for memory, and to look up
 * what most commands look up, which is slow the first time.
 */
static void prepare_ahead(struct init *init)
{
	static const char *const usual[] = {"/opt/sandlot/bin", "/usr/local/sbin", "/usr/local/bin",
		"/usr/sbin", "/usr/bin", "/sbin", "/bin/sh", "/workspace", "/etc/ld.so.cache",
		"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"};
	struct epoll_event event;

	if (epoll_wait(init->epoll_fd, &event, 1, 0) != 0)
		return;
	process_prepare(&init->processes);
	daemon_link_prepare(&init->link);
	for (size_t i = 0; i < array_len(usual); i++)
		(void)!access(usual[i], F_OK);
}

static void loop(struct init *init)
{
	struct epoll_event events[EVENTS_MAX];
	bool is_late = false;

	prepare_ahead(init);
	while (!init->ends) {
		int n = epoll_wait(
			init->epoll_fd, events, EVENTS_MAX, is_late ? 0 : timeout_ms(init));

		for (int i = 0; i < n; i++)
			dispatch(init, &events[i]);
		/* A command may have ended as it began: then both are told at once. */
		is_late = !is_late && !init->ends && daemon_link_has_more(&init->link);
		if (is_late)
			continue;
		process_tick(&init->processes);
		virtual_proc_tick(&init->machine);
		listener_tick(&init->listener);
		port_forward_tick(&init->forwards);
		daemon_link_settle(&init->link);
		/* After the hello went out, which the daemon waits for. */
		if (init->link.attached)
			process_prepare(&init->processes);
		if (is_shut_down(init))
			init->ends = true;
	}
}

/* The loop only needs to know that a child ended, or without a keeper that it is told to end. */
static int open_signals(bool has_keeper)
{
	sigset_t set;

	spawn_block_signals();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (!has_keeper)
		sigaddset(&set, SIGTERM);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* They were inherited over exec; commands must not have them. */
static int set_cloexec(const struct init_fds *fds)
{
	const int given[] = {fds->lifeline, fds->processes.group, fds->processes.score,
		fds->processes.work, fds->processes.denials};

	for (size_t i = 0; i < array_len(given); i++) {
		if (given[i] >= 0 && fcntl(given[i], F_SETFD, FD_CLOEXEC) < 0)
			return -errno;
	}
	return 0;
}

/*
 * Without a listener the kernel answers by itself. If the agent did not read its listener, calls
 * would hang.
 */
static int listen_to_denials(const struct init *init)
{
	int fd = init->processes.denials_fd;

	return fd < 0 ? 0 : watch_add(init->epoll_fd, fd, EPOLLIN, WATCH_DENIALS, 0);
}

static int listen_for_daemons(struct init *init, const struct listener_config *config)
{
	static const struct listener_config none = {.fd = -1};

	port_forwards_init(&init->forwards, init->epoll_fd);
	return listener_init(
		&init->listener, init->epoll_fd, config ? config : &none, &takers, init);
}

/* Watches the end of the keeper; one that listens has none. */
static int watch_lifeline(const struct init *init)
{
	int fd = init->lifeline_fd;

	return fd < 0 ? 0 : watch_add(init->epoll_fd, fd, EPOLLIN, WATCH_LIFELINE, 0);
}

int init_run(const struct init_fds *fds)
{
	struct init init = {.lifeline_fd = fds->lifeline};

	umask(022);
	init.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	init.signal_fd = open_signals(fds->lifeline >= 0);
	daemon_link_init(&init.link, init.epoll_fd);
	if (set_cloexec(fds) < 0)
		return 1;
	control_init(&init.control, init.epoll_fd, serve_channel, &init);
	process_table_init(
		&init.processes, init.epoll_fd, &fds->processes, &init.link, &init.control);
	/* The keeper's sealed copy of the program is not dumpable from the start; this is for
	 * other callers. */
	prctl(PR_SET_DUMPABLE, 0);
	if (watch_add(init.epoll_fd, init.signal_fd, EPOLLIN, WATCH_CHILDREN, 0) < 0 ||
		watch_lifeline(&init) < 0 || listen_to_denials(&init) < 0 ||
		listen_for_daemons(&init, fds->listener) < 0)
		return 1;
	virtual_proc_open(&init.machine, init.epoll_fd, fds->proc_files);
	loop(&init);
	return 0;
}
