/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/port_forward.h"

#include "agent/link/watch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/pack.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define WAIT_MAX_MS 60000
#define TURNS	    4 /* chunks of one direction in one turn of the loop */

/* One direction. */
struct flow {
	struct buf waiting; /* was read, and not taken yet */
	bool is_done;	    /* its end was passed on, or nobody takes it any more */
};

enum side { DAEMON, PORT };

struct port_forward {
	struct port_forward *next;
	uint32_t id;
	int fds[2];	     /* by enum side */
	uint32_t watched[2]; /* epoll events */
	struct flow from[2]; /* by the side that is read */
	uint16_t number;     /* of the port, while it is connected to */
	bool is_connected;
	bool is_v6;
	uint64_t due_ms; /* of the connection */
};

static const enum watch_role roles[] = {
	[DAEMON] = WATCH_FORWARD_DAEMON, [PORT] = WATCH_FORWARD_PORT};

void port_forwards_init(struct port_forwards *forwards, int epoll_fd)
{
	*forwards = (struct port_forwards){.epoll_fd = epoll_fd};
}

static void close_forward(struct port_forwards *forwards, struct port_forward *forward)
{
	struct port_forward **at = &forwards->first;

	while (*at != forward)
		at = &(*at)->next;
	*at = forward->next;
	forwards->count--;
	for (int side = DAEMON; side <= PORT; side++) {
		fd_close(forward->fds[side]);
		buf_fini(&forward->from[side].waiting);
	}
	free(forward);
}

/* How the connection went; the daemon waits for it. 0 or -errno. */
static int tell(int daemon_fd, int errnum)
{
	auto_(buf_fini) struct buf out = BUF_INIT(4);

	pack_u32(&out, (uint32_t)errnum);
	return send(daemon_fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)out.len
		       ? 0
		       : -EIO;
}

/* --- relaying --- */

/* What is waiting goes first. 0 or -errno; -EAGAIN if the socket takes no more. */
static int write_waiting(struct flow *flow, int to)
{
	ssize_t n;

	if (flow->waiting.len == 0)
		return 0;
	n = send(to, flow->waiting.data, flow->waiting.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	buf_consume(&flow->waiting, (size_t)n);
	if (flow->waiting.len > 0)
		return -EAGAIN;
	buf_fini(&flow->waiting);
	return 0;
}

/* The other side takes nothing more. What comes the other way is still worth having. */
static int give_up(struct flow *flow)
{
	buf_fini(&flow->waiting);
	flow->is_done = true;
	return 0;
}

/* Keeps what was not taken. 1, or -errno. */
static int keep(struct flow *flow, const uint8_t *data, size_t len)
{
	return len > 0 && buf_append(&flow->waiting, data, len) < 0 ? -ENOMEM : 1;
}

/* Moves one chunk. 1, 0 for nothing to be moved now, or -errno of the side that is read. */
static int move_chunk(struct flow *flow, int from, int to)
{
	uint8_t data[PORT_FORWARD_CHUNK] not_cleared;
	ssize_t n, sent;
	int r;

	if (flow->is_done)
		return 0;
	r = write_waiting(flow, to);
	if (r < 0)
		return r == -EAGAIN ? 0 : give_up(flow);
	n = recv(from, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	/* Passed on at once, since nothing is waiting: no event would come for it later. */
	if (n == 0) {
		flow->is_done = true;
		shutdown(to, SHUT_WR);
		return 0;
	}
	sent = send(to, data, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		return give_up(flow);
	sent = sent < 0 ? 0 : sent;
	return keep(flow, data + sent, (size_t)(n - sent));
}

static int move(struct port_forward *forward, enum side from)
{
	int r = 1;

	for (int i = 0; i < TURNS && r > 0; i++)
		r = move_chunk(&forward->from[from], forward->fds[from], forward->fds[!from]);
	return r;
}

/*
 * Has the kernel tell what can go on. A side of which nothing is wanted is not watched at all: its
 * errors and its hangup would be told without end. 0 or -errno.
 */
static int watch_side(struct port_forwards *forwards, struct port_forward *forward, enum side side,
	uint32_t wanted)
{
	uint32_t watched = forward->watched[side];
	int fd = forward->fds[side];

	forward->watched[side] = wanted;
	if (wanted == watched)
		return 0;
	if (wanted == 0)
		return epoll_ctl(forwards->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0 ? -errno : 0;
	if (watched == 0)
		return watch_add(forwards->epoll_fd, fd, wanted, roles[side], forward->id);
	return watch_change(forwards->epoll_fd, fd, wanted, roles[side], forward->id);
}

static int watch_both(struct port_forwards *forwards, struct port_forward *forward)
{
	int r = 0;

	for (int side = DAEMON; r == 0 && side <= PORT; side++) {
		const struct flow *in = &forward->from[side], *out = &forward->from[!side];

		r = watch_side(forwards, forward, (enum side)side,
			(!in->is_done && in->waiting.len == 0 ? EPOLLIN : 0) |
				(out->waiting.len > 0 ? EPOLLOUT : 0));
	}
	return r;
}

static void relay(struct port_forwards *forwards, struct port_forward *forward)
{
	if (move(forward, PORT) < 0 || move(forward, DAEMON) < 0 ||
		(forward->from[DAEMON].is_done && forward->from[PORT].is_done) ||
		watch_both(forwards, forward) < 0)
		close_forward(forwards, forward);
}

/* --- connecting --- */

static socklen_t loopback_of(const struct port_forward *forward, struct sockaddr_storage *ret_to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret_to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_to;

	if (forward->is_v6) {
		*v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
			.sin6_addr = in6addr_loopback,
			.sin6_port = htons(forward->number)};
		return sizeof(*v6);
	}
	*v4 = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(forward->number)};
	return sizeof(*v4);
}

/* What became of a connection that was begun: 0, -EINPROGRESS, or -errno. */
static int connect_result(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int failed = 0;
	socklen_t len = sizeof(failed);

	if (poll(&ready, 1, 0) == 0)
		return -EINPROGRESS;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0 ? -errno : -failed;
}

/* Begins to connect by one version of IP. 0, -EINPROGRESS, or -errno. */
static int begin(struct port_forwards *forwards, struct port_forward *forward)
{
	struct sockaddr_storage to;
	socklen_t len = loopback_of(forward, &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0;

	fd_close(forward->fds[PORT]);
	forward->fds[PORT] = fd;
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0)
		r = -errno;
	/* On a loopback it is made or refused by now, as a rule. */
	if (r == -EINPROGRESS)
		r = connect_result(fd);
	/* Where there is no IPv6, nobody listens there. */
	if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
		return -ECONNREFUSED;
	if (r < 0 && r != -EINPROGRESS)
		return r;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	forward->watched[PORT] = EPOLLOUT;
	if (watch_add(forwards->epoll_fd, fd, EPOLLOUT, WATCH_FORWARD_PORT, forward->id) < 0)
		return -EIO;
	return r;
}

/* Goes on after a try: 0 is connected. Development servers often listen on IPv6 alone. */
static void go_on(struct port_forwards *forwards, struct port_forward *forward, int r)
{
	if (r == -ECONNREFUSED && !forward->is_v6) {
		forward->is_v6 = true;
		r = begin(forwards, forward);
	}
	if (r == -EINPROGRESS && clock_steady_ms() < forward->due_ms)
		return;
	if (r == -EINPROGRESS)
		r = -ETIMEDOUT;
	if (tell(forward->fds[DAEMON], -r) < 0 || r < 0) {
		close_forward(forwards, forward);
		return;
	}
	forward->is_connected = true;
	relay(forwards, forward);
}

void port_forward_open(
	struct port_forwards *forwards, int daemon_fd, const struct proof_claim *claim)
{
	struct port_forward *forward;

	if (forwards->count == PORT_FORWARD_MAX) {
		(void)!tell(daemon_fd, EMFILE);
		fd_close(daemon_fd);
		return;
	}
	forward = mem_new(sizeof(*forward));
	*forward = (struct port_forward){.next = forwards->first,
		.id = ++forwards->last_id,
		.fds = {daemon_fd, -1},
		.from = {{.waiting = BUF_INIT(PORT_FORWARD_CHUNK)},
			{.waiting = BUF_INIT(PORT_FORWARD_CHUNK)}},
		.number = claim->port,
		.due_ms = clock_steady_ms() +
			  (claim->wait_ms < WAIT_MAX_MS ? claim->wait_ms : WAIT_MAX_MS)};
	forwards->first = forward;
	forwards->count++;
	/* Until then the daemon says nothing: it can only go away. */
	forward->watched[DAEMON] = EPOLLRDHUP;
	if (watch_add(forwards->epoll_fd, daemon_fd, EPOLLRDHUP, WATCH_FORWARD_DAEMON,
		    forward->id) < 0)
		close_forward(forwards, forward);
	else
		go_on(forwards, forward, begin(forwards, forward));
}

static struct port_forward *find(const struct port_forwards *forwards, uint32_t id)
{
	struct port_forward *forward = forwards->first;

	while (forward && forward->id != id)
		forward = forward->next;
	return forward;
}

void port_forward_ready(struct port_forwards *forwards, uint32_t id, bool is_daemon)
{
	struct port_forward *forward = find(forwards, id);

	if (!forward)
		return;
	if (forward->is_connected)
		relay(forwards, forward);
	else if (is_daemon)
		close_forward(forwards, forward);
	else
		go_on(forwards, forward, connect_result(forward->fds[PORT]));
}

/* --- time --- */

int port_forward_patience_ms(const struct port_forwards *forwards)
{
	uint64_t due_ms = UINT64_MAX, now_ms;

	for (const struct port_forward *forward = forwards->first; forward;
		forward = forward->next) {
		if (!forward->is_connected && forward->due_ms < due_ms)
			due_ms = forward->due_ms;
	}
	if (due_ms == UINT64_MAX)
		return -1;
	now_ms = clock_steady_ms();
	return due_ms > now_ms ? (int)(due_ms - now_ms) : 0;
}

void port_forward_tick(struct port_forwards *forwards)
{
	struct port_forward *next;
	uint64_t now_ms;

	if (port_forward_patience_ms(forwards) != 0)
		return;
	now_ms = clock_steady_ms();
	for (struct port_forward *forward = forwards->first; forward; forward = next) {
		next = forward->next;
		if (!forward->is_connected && forward->due_ms <= now_ms)
			go_on(forwards, forward, -ETIMEDOUT);
	}
}
