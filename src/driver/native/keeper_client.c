/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/keeper_client.h"

#include "base/fd.h"
#include "base/log.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * For requests that may take long: the end of a sandbox with much memory, a large tree that is
 * counted or removed. If the keeper hangs, every call ends much earlier (keeper_watch.h).
 */
#define CALL_TIMEOUT_MS KEEPER_CLIENT_TIMEOUT_MS
#define ASK_LOOK_MS	100

static int make_address(const char *path, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret_address->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret_address->sun_path, path, strlen(path) + 1);
	return 0;
}

static int connect_to(const struct sockaddr_un *address)
{
	auto_fd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int r;

	if (sock < 0)
		return -errno;
	/* Set before it connects: a keeper that hangs accepts no connection, and its queue
	 * becomes full. */
	r = fd_set_timeout(sock, KEEPER_WATCH_SILENT_MS);
	if (r < 0)
		return r;
	if (connect(sock, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	return take_fd(&sock);
}

static int take_connection(struct keeper_client *client)
{
	int sock = -1;

	pthread_mutex_lock(&client->lock);
	if (client->idle_count > 0)
		sock = client->idle[--client->idle_count];
	pthread_mutex_unlock(&client->lock);
	return sock >= 0 ? sock : connect_to(&client->address);
}

static void return_connection(struct keeper_client *client, int sock)
{
	pthread_mutex_lock(&client->lock);
	if (client->idle_count < KEEPER_CLIENT_IDLE_MAX)
		client->idle[client->idle_count++] = take_fd(&sock);
	pthread_mutex_unlock(&client->lock);
	fd_close(sock);
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fd_close(fds[i]);
}

int keeper_client_check(struct keeper_client *client, struct err *err)
{
	return client->watch ? keeper_watch_check(client->watch, err) : 0;
}

/* Waits until there is an answer to read, or none can come. */
static int await_answer(struct keeper_client *client, int sock, struct err *err)
{
	struct pollfd fds[] = {{.fd = sock, .events = POLLIN},
		{.fd = client->watch ? keeper_watch_trouble_fd(client->watch) : -1,
			.events = POLLIN}};
	int timeout_ms = client->watch ? CALL_TIMEOUT_MS : KEEPER_WATCH_SILENT_MS;
	int n;

	do
		n = poll(fds, array_len(fds), timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "wait for the keeper");
	if (fds[0].revents)
		return 0;
	return n > 0 ? keeper_client_check(client, err) : keeper_watch_explain_silence(err);
}

/* The keeper cannot be reached at all. */
static int explain_refusal(int r, struct err *err)
{
	return r == -EAGAIN ? keeper_watch_explain_silence(err)
			    : keeper_watch_explain_gone(err, strerror(-r));
}

/* With the request of a client that it is for, so that the keeper's lines name that too. */
static bool send_request(int sock, const struct keeper_request *request)
{
	struct keeper_request named = *request;

	named.subject = log_subject();
	return send(sock, &named, keeper_request_size(request), MSG_NOSIGNAL) >= 0;
}

int keeper_client_call_with(struct keeper_client *client, const struct keeper_request *request,
	struct keeper_answer *answer, int *ret_fds, size_t count, struct err *err)
{
	/* The keeper may give the connection of such a request to a child, which ends it. */
	bool is_last =
		request->kind == KEEPER_USAGE || request->kind == KEEPER_CLEAN ||
		request->kind == KEEPER_OWNER || request->kind == KEEPER_CHECK ||
		(request->kind >= KEEPER_LAYER_WRITE && request->kind <= KEEPER_SNAPSHOT_COPY);
	int fds[FDPASS_MAX] = {-1, -1, -1, -1, -1, -1};
	auto_fd int sock = -1;
	ssize_t n;
	int r = keeper_client_check(client, err);

	if (r < 0)
		return r;
	sock = is_last ? connect_to(&client->address) : take_connection(client);
	if (sock < 0)
		return explain_refusal(sock, err);
	if (!send_request(sock, request))
		return explain_refusal(-errno, err);
	r = await_answer(client, sock, err);
	if (r < 0)
		return r;
	n = fdpass_recv(sock, answer, sizeof(*answer), fds, 0);
	for (size_t i = count; i < FDPASS_MAX; i++)
		fd_close(fds[i]);
	if (n != (ssize_t)sizeof(*answer)) {
		close_all(fds, count);
		return keeper_watch_explain_gone(
			err, n < 0 ? strerror((int)-n) : "it hung up on a request");
	}
	if (!is_last)
		return_connection(client, take_fd(&sock));
	if (answer->result < 0) {
		*err = answer->err;
		close_all(fds, count);
		return answer->result;
	}
	memcpy(ret_fds, fds, count * sizeof(int));
	return 0;
}

int keeper_client_call(struct keeper_client *client, const struct keeper_request *request,
	struct keeper_answer *answer, int *ret_fd, struct err *err)
{
	int none[1];

	return keeper_client_call_with(
		client, request, answer, ret_fd ? ret_fd : none, ret_fd ? 1 : 0, err);
}

void keeper_client_order(
	struct keeper_client *client, const struct keeper_request *orders, size_t count)
{
	int sock = count > 0 ? take_connection(client) : -1;
	ssize_t n = 0;

	for (size_t i = 0; i < count && sock >= 0 && n >= 0; i++)
		n = send(sock, &orders[i], sizeof(orders[i]), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0 && sock >= 0)
		return_connection(client, sock);
	else
		fd_close(sock);
}

int keeper_client_probe(const char *socket_path)
{
	struct sockaddr_un address;
	int r = make_address(socket_path, &address);

	if (r == 0)
		r = connect_to(&address);
	fd_close(r);
	return r < 0 ? r : 0;
}

int keeper_client_ask(const char *socket_path, int ms)
{
	const struct keeper_request request = {.kind = KEEPER_HELLO};
	struct pollfd answer = {.events = POLLIN};
	auto_fd int sock = -1;
	struct sockaddr_un address;
	int r = make_address(socket_path, &address);

	if (r < 0)
		return r;
	sock = connect_to(&address);
	/* Its queue of connections is full. */
	if (sock == -EAGAIN)
		return -ETIMEDOUT;
	if (sock < 0)
		return sock;
	if (send(sock, &request, keeper_request_size(&request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	/* In steps: only time in which we run ourselves counts, as in keeper_watch.c. */
	answer.fd = sock;
	for (int waited_ms = 0; waited_ms < ms; waited_ms += ASK_LOOK_MS) {
		if (poll(&answer, 1, ASK_LOOK_MS) > 0)
			return 0;
	}
	return -ETIMEDOUT;
}

int keeper_client_init(struct keeper_client *client, const char *socket_path)
{
	*client = (struct keeper_client){.idle_count = 0};
	pthread_mutex_init(&client->lock, NULL);
	return make_address(socket_path, &client->address);
}

int keeper_client_watch(struct keeper_client *client, uint64_t patience_ms, struct err *err)
{
	int r = keeper_watch_open(&client->address, patience_ms, &client->watch, err);

	/* So many are kept at rest anyway, and their number then says nothing of what was done before. */
	for (int i = 0; r == 0 && i < KEEPER_CLIENT_IDLE_MAX; i++) {
		int sock = connect_to(&client->address);

		if (sock < 0)
			break;
		return_connection(client, sock);
	}
	return r;
}

void keeper_client_fini(struct keeper_client *client)
{
	while (client->idle_count > 0)
		close(client->idle[--client->idle_count]);
	keeper_watch_close(client->watch);
	pthread_mutex_destroy(&client->lock);
}
