/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/init.h"

#include "agent/file.h"
#include "agent/helper.h"
#include "agent/job.h"
#include "agent/lineage.h"
#include "agent/machine.h"
#include "agent/payload.h"
#include "agent/port_scan.h"
#include "agent/uplink.h"
#include "agent/watch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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

struct init {
	int epoll_fd;
	int signal_fd;
	int lifeline_fd;
	bool ends; /* leave the loop */
	bool shutting_down;
	uint64_t deadline_ms; /* of the shutdown */
	struct uplink link;
	struct job_table jobs;
	struct helper_table helpers;
	struct machine machine;
};

static int handle_attach(struct init *init, const struct frame *frame)
{
	uint32_t version;
	int r = payload_u32_parse(frame, &version);

	if (r < 0)
		return r;
	/* Whether it can speak with our version is for the daemon to say. */
	init->link.attached = true;
	job_resume_all(&init->jobs);
	return 0;
}

static int handle_exec(struct init *init, const struct frame *frame)
{
	return job_exec(&init->jobs, frame);
}

static int handle_stdin(struct init *init, const struct frame *frame)
{
	return job_stdin(&init->jobs, frame);
}

static int handle_stdin_close(struct init *init, const struct frame *frame)
{
	return job_stdin_close(&init->jobs, frame);
}

static int handle_signal(struct init *init, const struct frame *frame)
{
	return job_signal(&init->jobs, frame);
}

static int handle_resize(struct init *init, const struct frame *frame)
{
	return job_resize(&init->jobs, frame);
}

static int handle_ack(struct init *init, const struct frame *frame)
{
	return job_ack(&init->jobs, frame);
}

static int handle_forget(struct init *init, const struct frame *frame)
{
	return job_forget(&init->jobs, frame);
}

static int handle_file(struct init *init, const struct frame *frame)
{
	auto_fd int channel = uplink_take_fd(&init->link);
	struct payload_file request;
	int r;

	if (channel < 0)
		return -EPROTO;
	r = payload_file_parse(frame, &request);
	if (r < 0)
		return r;
	r = helper_start(&init->helpers, &init->jobs.base.oom,
		&(struct helper_task){file_serve, &request, request.op == AGENT_FILE_WATCH},
		channel);
	if (r < 0)
		file_refuse(channel, -r);
	payload_file_fini(&request);
	return 0;
}

static int handle_ports(struct init *init, const struct frame *frame)
{
	auto_fd int channel = uplink_take_fd(&init->link);
	struct port_scan_query query = {.jobs = &init->jobs};
	int r = payload_u64_parse(frame, &query.known);

	if (channel < 0 || r < 0)
		return -EPROTO;
	/* If there is none, the end of the channel says so. */
	(void)!helper_start(&init->helpers, &init->jobs.base.oom,
		&(struct helper_task){port_scan_serve, &query, false}, channel);
	return 0;
}

/* A stopped process would sleep through its SIGTERM. */
static void signal_everybody(void)
{
	static const int signals[] = {SIGTERM, SIGCONT};

	for (size_t i = 0; i < array_len(signals); i++) {
		/* Where it is not PID 1 (a test), -1 would mean the whole machine. */
		if (getpid() == 1)
			kill(-1, signals[i]);
		else
			lineage_signal_own(signals[i]);
	}
}

static int handle_shutdown(struct init *init, const struct frame *frame)
{
	uint32_t grace_ms;
	int r = payload_u32_parse(frame, &grace_ms);

	if (r < 0)
		return r;
	if (init->shutting_down)
		return 0;
	init->shutting_down = true;
	init->deadline_ms = clock_steady_ms() + grace_ms;
	init->jobs.closed = true;
	signal_everybody();
	return 0;
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
	[AGENT_FILE] = handle_file,
	[AGENT_SHUTDOWN] = handle_shutdown,
	[AGENT_PORTS] = handle_ports,
};

/* AGENT_ATTACH comes first, and only then. */
static int handle_frame(void *context, const struct frame *frame)
{
	struct init *init = context;

	if (frame->kind >= array_len(handlers) || !handlers[frame->kind])
		return -EPROTO;
	if ((frame->kind == AGENT_ATTACH) == init->link.attached)
		return -EPROTO;
	return handlers[frame->kind](init, frame);
}

static void lifeline_ready(struct init *init)
{
	int fds[FDPASS_MAX];
	char byte;
	ssize_t n = fdpass_recv(init->lifeline_fd, &byte, 1, fds, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EPROTO)
		return;
	if (n <= 0) {
		init->ends = true;
		return;
	}
	if (byte == AGENT_LINK && fds[0] >= 0) {
		uplink_open(&init->link, fds[0]);
		fds[0] = -1;
	}
	for (size_t i = 0; i < FDPASS_MAX; i++)
		fd_close(fds[i]);
}

static void link_ready(struct init *init, uint32_t events)
{
	if (events & EPOLLOUT) {
		uplink_resume(&init->link);
		job_send_all(&init->jobs);
	}
	if (events & ~(uint32_t)EPOLLOUT)
		uplink_receive(&init->link, handle_frame, init);
}

/* Besides its own children, PID 1 reaps every orphan of the sandbox. */
static void children_ready(struct init *init)
{
	struct signalfd_siginfo info;
	struct rusage usage;
	int status;
	pid_t pid;

	if (read(init->signal_fd, &info, sizeof(info)) < 0 && errno != EAGAIN)
		return;
	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage)) > 0) {
		/* Unsigned: musl's macro multiplies what it is given, beyond an int from exit code 128 on. */
		if (WIFSTOPPED((unsigned int)status))
			helper_stopped(&init->helpers, pid);
		else if (!job_end(&init->jobs, pid, status, &usage))
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
	case WATCH_CHILDREN:
		children_ready(init);
		break;
	case WATCH_MACHINE:
		machine_ready(&init->machine);
		break;
	case WATCH_DENIALS:
		/* One for each turn, so that a flood of them leaves time for the rest. A hangup is no
		 * question, and waiting for one would be for ever: the cell's end follows. */
		if (event->events & EPOLLIN)
			job_deny(&init->jobs, watch_id(event->data.u64));
		break;
	case WATCH_STDIN:
	case WATCH_STDOUT:
	case WATCH_STDERR:
	case WATCH_TERMINAL:
	case WATCH_GROUP:
	case WATCH_CELL:
		job_ready(&init->jobs, role, watch_id(event->data.u64), event->events);
		break;
	}
}

/* Of two times to wait, where -1 is for ever. */
static int sooner(int a, int b)
{
	return b < 0 || (a >= 0 && a < b) ? a : b;
}

/* How long epoll may wait: for ever, or until a job, a file or the end of a shutdown is due. */
static int patience_ms(const struct init *init)
{
	int patience = sooner(job_patience_ms(&init->jobs), machine_patience_ms(&init->machine));
	uint64_t now, left;

	if (!init->shutting_down)
		return patience;
	now = clock_steady_ms();
	left = now < init->deadline_ms ? init->deadline_ms - now : 0;
	if (patience < 0 || left < (uint64_t)patience)
		patience = left < 1000 ? (int)left : 1000;
	return patience;
}

static bool is_shut_down(const struct init *init)
{
	siginfo_t info;

	if (!init->shutting_down)
		return false;
	return clock_steady_ms() >= init->deadline_ms ||
	       (!job_has_cells(&init->jobs) &&
		       waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD);
}

static void loop(struct init *init)
{
	struct epoll_event events[EVENTS_MAX];

	while (!init->ends) {
		int n = epoll_wait(init->epoll_fd, events, EVENTS_MAX, patience_ms(init));

		for (int i = 0; i < n; i++)
			dispatch(init, &events[i]);
		job_tick(&init->jobs);
		machine_tick(&init->machine);
		uplink_settle(&init->link);
		/* After the hello went out, which the daemon waits for. */
		if (init->link.attached)
			job_prepare(&init->jobs);
		if (is_shut_down(init))
			init->ends = true;
	}
}

/* The end of a child is all that is of interest. */
static int open_signals(void)
{
	sigset_t set;

	launch_block_signals();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* They were given to us over exec; nobody else is to have them. */
static int keep_to_ourselves(const struct init_fds *fds)
{
	const int given[] = {
		fds->lifeline, fds->jobs.group, fds->jobs.score, fds->jobs.work, fds->jobs.denials};

	for (size_t i = 0; i < array_len(given); i++) {
		if (given[i] >= 0 && fcntl(given[i], F_SETFD, FD_CLOEXEC) < 0)
			return -errno;
	}
	return 0;
}

/* Without a listener the kernel answers by itself. With one that nobody listens to, calls would hang. */
static int listen_to_denials(const struct init *init)
{
	int fd = init->jobs.denials_fd;

	return fd < 0 ? 0 : watch_add(init->epoll_fd, fd, EPOLLIN, WATCH_DENIALS, 0);
}

int init_run(const struct init_fds *fds)
{
	struct init init = {.lifeline_fd = fds->lifeline};

	umask(022);
	init.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	init.signal_fd = open_signals();
	uplink_init(&init.link, init.epoll_fd);
	if (keep_to_ourselves(fds) < 0)
		return 1;
	job_table_init(&init.jobs, init.epoll_fd, &fds->jobs, &init.link);
	/* The keeper's copy of the program makes it so from the start; here for whoever runs another. */
	prctl(PR_SET_DUMPABLE, 0);
	if (watch_add(init.epoll_fd, init.signal_fd, EPOLLIN, WATCH_CHILDREN, 0) < 0 ||
		watch_add(init.epoll_fd, fds->lifeline, EPOLLIN, WATCH_LIFELINE, 0) < 0 ||
		listen_to_denials(&init) < 0)
		return 1;
	machine_open(&init.machine, init.epoll_fd, fds->sheets);
	loop(&init);
	return 0;
}
