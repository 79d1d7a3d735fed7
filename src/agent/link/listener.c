/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/listener.h"

#include "agent/link/watch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64
#define BATCH	16  /* connections in one turn of the loop */
#define REST_MS 200 /* after a failure to accept, which would come again at once */

/* After so long in silence the other host is asked whether it is still there. */
#define KEEP_IDLE_S 30
#define KEEP_EACH_S 10
#define KEEP_PROBES 3

/* --- opening --- */

static int start_listening(int fd, const struct sockaddr *address, socklen_t len)
{
	if (bind(fd, address, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static int open_unix(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat stat;
	mode_t mask;
	int r;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	/* Left by an agent before, in a container that was started again. */
	if (lstat(path, &stat) == 0 && S_ISSOCK(stat.st_mode))
		unlink(path);
	mask = umask(0177);
	r = start_listening(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* Of both versions of IP, or of the old one where there is no other. */
static int open_tcp(uint16_t port, int *ret_fd)
{
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	auto_fd int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool has_v6 = fd >= 0;
	int r;

	if (!has_v6)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (has_v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
	r = has_v6 ? start_listening(fd, (const struct sockaddr *)&v6, sizeof(v6))
		   : start_listening(fd, (const struct sockaddr *)&v4, sizeof(v4));
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int listener_open(const char *where, int *ret_fd)
{
	char *end;
	unsigned long port;

	if (where[0] == '/')
		return open_unix(where, ret_fd);
	port = strtoul(where, &end, 10);
	if (where[0] < '1' || where[0] > '9' || *end || port > 65535)
		return -EINVAL;
	return open_tcp((uint16_t)port, ret_fd);
}

int listener_init(struct listener *listener, int epoll_fd, const struct listener_config *config,
	const struct listener_takers *takers, void *context)
{
	*listener = (struct listener){.epoll_fd = epoll_fd,
		.fd = config->fd,
		.secret = config->secret,
		.patience_ms = config->patience_ms,
		.takers = takers,
		.context = context};
	return listener->fd < 0 ? 0 : watch_add(epoll_fd, listener->fd, EPOLLIN, WATCH_LISTENER, 0);
}

uint16_t listener_port(const struct listener *listener)
{
	struct sockaddr_storage address = {0};
	socklen_t len = sizeof(address);

	if (listener->fd < 0 || getsockname(listener->fd, (struct sockaddr *)&address, &len) < 0)
		return 0;
	if (address.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
	if (address.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&address)->sin_port);
	return 0;
}

/* --- connections that have not proven themselves --- */

static void free_conn(struct listener_conn *conn)
{
	fd_close(take_fd(&conn->fd));
	buf_fini(&conn->in);
}

/* One that never listens, as in most sandboxes, has no memory for it. */
static void make_rows(struct listener *listener)
{
	if (listener->conns)
		return;
	listener->conns = mem_new(LISTENER_WAITING_MAX * sizeof(*listener->conns));
	for (size_t i = 0; i < LISTENER_WAITING_MAX; i++)
		listener->conns[i].fd = -1;
}

static size_t row_count(const struct listener *listener)
{
	return listener->conns ? LISTENER_WAITING_MAX : 0;
}

/* A free row, or that of the stranger who waits longest; NULL if there are only proven ones. */
static struct listener_conn *make_room(struct listener *listener)
{
	struct listener_conn *oldest = NULL;

	make_rows(listener);
	for (size_t i = 0; i < row_count(listener); i++) {
		struct listener_conn *conn = &listener->conns[i];

		if (conn->fd < 0)
			return conn;
		if (!conn->is_proven && (!oldest || conn->due_ms < oldest->due_ms ||
						(conn->due_ms == oldest->due_ms &&
							(int32_t)(conn->id - oldest->id) < 0)))
			oldest = conn;
	}
	if (oldest)
		free_conn(oldest);
	return oldest;
}

/* Fails on a unix socket, where there is nothing to tune. */
static void tune(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEP_IDLE_S}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){KEEP_EACH_S}, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){KEEP_PROBES}, sizeof(int));
}

void listener_greet(struct listener *listener, int fd)
{
	struct listener_conn *conn = make_room(listener);

	if (!conn) {
		fd_close(fd);
		return;
	}
	*conn = (struct listener_conn){.fd = fd,
		.id = ++listener->last_id,
		.due_ms = clock_steady_ms() + listener->patience_ms,
		.in = BUF_INIT(AGENT_CHANNEL_FIRST_MAX)};
	tune(fd);
	/* A new socket takes that much at once. */
	if (proof_greet(conn->greeting) < 0 ||
		send(fd, conn->greeting, sizeof(conn->greeting), MSG_DONTWAIT | MSG_NOSIGNAL) !=
			(ssize_t)sizeof(conn->greeting) ||
		watch_add(listener->epoll_fd, fd, EPOLLIN, WATCH_ARRIVAL, conn->id) < 0)
		free_conn(conn);
}

void listener_ready(struct listener *listener)
{
	for (int i = 0; i < BATCH; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			listener_greet(listener, fd);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		/* No descriptor is left, say: it is still there to be accepted, and the loop would
		 * turn without end. */
		if (watch_change(listener->epoll_fd, listener->fd, 0, WATCH_LISTENER, 0) == 0)
			listener->rest_until_ms = clock_steady_ms() + REST_MS;
		return;
	}
}

/* How many bytes of what is expected are missing: no byte behind that is read. */
static size_t bytes_missing(const struct listener_conn *conn)
{
	struct unpack header = UNPACK_INIT(conn->in.data, conn->in.len);
	size_t whole = conn->is_proven ? FRAME_HEADER_LEN : PROOF_CLAIM_LEN;

	if (conn->is_proven && conn->in.len >= FRAME_HEADER_LEN)
		whole += unpack_u32(&header);
	return whole - conn->in.len;
}

/* Gives it away; only its descriptor lives on. */
static void give(struct listener *listener, struct listener_conn *conn,
	const struct proof_claim *claim, const struct frame *first)
{
	int fd = take_fd(&conn->fd);

	/* The taker has a watch of its own. */
	if (epoll_ctl(listener->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
		fd_close(fd);
	else if (first)
		listener->takers->channel(listener->context, fd, first);
	else if (claim->purpose == PROOF_LINK)
		listener->takers->link(listener->context, fd);
	else
		listener->takers->dial(listener->context, fd, claim);
	free_conn(conn);
}

/* 0, or negative if the connection is to be closed. */
static int take_claim(struct listener *listener, struct listener_conn *conn)
{
	uint8_t answer[PROOF_ANSWER_LEN];
	struct proof_claim claim;
	int r = proof_check_claim(&listener->secret, conn->greeting, conn->in.data, &claim);

	if (r < 0)
		return r;
	proof_make_answer(&listener->secret, conn->greeting, conn->in.data, answer);
	if (send(conn->fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL) !=
		(ssize_t)sizeof(answer))
		return -EIO;
	conn->is_proven = true;
	conn->in.len = 0;
	if (claim.purpose != PROOF_CHANNEL)
		give(listener, conn, &claim, NULL);
	return 0;
}

static int take_first(struct listener *listener, struct listener_conn *conn)
{
	struct frame first;
	int r = frame_next(
		conn->in.data, conn->in.len, AGENT_CHANNEL_FIRST_MAX - FRAME_HEADER_LEN, &first);

	if (r > 0)
		give(listener, conn, NULL, &first);
	return r < 0 ? r : 0;
}

/* 0, or negative if the connection is to be closed. */
static int receive(struct listener *listener, struct listener_conn *conn)
{
	size_t missing = bytes_missing(conn);
	ssize_t n;

	if (buf_reserve(&conn->in, missing) < 0)
		return -EPROTO;
	n = recv(conn->fd, conn->in.data + conn->in.len, missing, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ENODATA;
	conn->in.len += (size_t)n;
	if (conn->is_proven)
		return take_first(listener, conn);
	return conn->in.len == PROOF_CLAIM_LEN ? take_claim(listener, conn) : 0;
}

void listener_receive(struct listener *listener, uint32_t id)
{
	for (size_t i = 0; i < row_count(listener); i++) {
		struct listener_conn *conn = &listener->conns[i];

		if (conn->fd < 0 || conn->id != id)
			continue;
		if (receive(listener, conn) < 0)
			free_conn(conn);
		return;
	}
}

/* --- time --- */

static uint64_t next_due(const struct listener *listener)
{
	uint64_t due_ms = listener->rest_until_ms ? listener->rest_until_ms : UINT64_MAX;

	for (size_t i = 0; i < row_count(listener); i++) {
		if (listener->conns[i].fd >= 0 && listener->conns[i].due_ms < due_ms)
			due_ms = listener->conns[i].due_ms;
	}
	return due_ms;
}

int listener_patience_ms(const struct listener *listener)
{
	uint64_t due_ms = listener->fd < 0 ? UINT64_MAX : next_due(listener), now_ms;

	if (due_ms == UINT64_MAX)
		return -1;
	now_ms = clock_steady_ms();
	return due_ms > now_ms ? (int)(due_ms - now_ms) : 0;
}

void listener_tick(struct listener *listener)
{
	uint64_t now_ms;

	if (listener_patience_ms(listener) != 0)
		return;
	now_ms = clock_steady_ms();
	for (size_t i = 0; i < row_count(listener); i++) {
		if (listener->conns[i].fd >= 0 && listener->conns[i].due_ms <= now_ms)
			free_conn(&listener->conns[i]);
	}
	if (listener->rest_until_ms && listener->rest_until_ms <= now_ms) {
		listener->rest_until_ms = 0;
		(void)!watch_change(listener->epoll_fd, listener->fd, EPOLLIN, WATCH_LISTENER, 0);
	}
}
