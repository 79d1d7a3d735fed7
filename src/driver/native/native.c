/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request at a time on each connection to the keeper: a caller takes an idle connection or opens
 * another, so calls of several threads run side by side and each reads as a plain function call.
 */
#include "driver/native/native.h"

#include "base/fd.h"
#include "wire/fdpass.h"
#include "wire/keeper.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define IDLE_MAX	4 /* more are opened when needed, and closed after */
#define CALL_TIMEOUT_MS 30000

static_assert(DRIVER_PAGE == KEEPER_LIST_MAX, "pages are passed on as they are");
static_assert(ID_LEN == KEEPER_ID_LEN, "ids are passed on as they are");

struct native {
	struct driver base;
	bool limits_disk;
	pthread_mutex_t lock;
	int idle[IDLE_MAX];
	size_t idle_count;
	int watch_fd;
	struct sockaddr_un address;
};

static struct native *native_from(struct driver *driver)
{
	return (struct native *)driver;
}

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

	if (sock < 0 || connect(sock, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	r = fd_set_timeout(sock, CALL_TIMEOUT_MS);
	return r < 0 ? r : take_fd(&sock);
}

static int take_connection(struct native *native)
{
	int sock = -1;

	pthread_mutex_lock(&native->lock);
	if (native->idle_count > 0)
		sock = native->idle[--native->idle_count];
	pthread_mutex_unlock(&native->lock);
	return sock >= 0 ? sock : connect_to(&native->address);
}

static void return_connection(struct native *native, int sock)
{
	pthread_mutex_lock(&native->lock);
	if (native->idle_count < IDLE_MAX)
		native->idle[native->idle_count++] = take_fd(&sock);
	pthread_mutex_unlock(&native->lock);
	fd_close(sock);
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fd_close(fds[i]);
}

/* Sends a request, waits for the answer; ret_fds gets the descriptors that came with it. */
static int call_with(struct native *native, const struct keeper_request *request,
	struct keeper_answer *answer, int *ret_fds, size_t count, struct err *err)
{
	/* The keeper may give the connection of such a request to a child, which ends it. */
	bool is_last = request->kind == KEEPER_USAGE || request->kind == KEEPER_CLEAN;
	auto_fd int sock = is_last ? connect_to(&native->address) : take_connection(native);
	int fds[FDPASS_MAX] = {-1, -1, -1, -1};
	ssize_t n;

	if (sock < 0)
		return err_explain(err, ERR_UNAVAILABLE, "keeper_unavailable", "restart sandlotd",
			"cannot reach the keeper: %s", strerror(-sock));
	n = send(sock, request, sizeof(*request), MSG_NOSIGNAL);
	if (n == (ssize_t)sizeof(*request))
		n = fdpass_recv(sock, answer, sizeof(*answer), fds, 0);
	else
		n = -errno;
	for (size_t i = count; i < FDPASS_MAX; i++)
		fd_close(fds[i]);
	if (n != (ssize_t)sizeof(*answer)) {
		close_all(fds, count);
		return err_explain(err, ERR_UNAVAILABLE, "keeper_unavailable", "restart sandlotd",
			"the keeper did not answer: %s", n < 0 ? strerror((int)-n) : "it hung up");
	}
	if (!is_last)
		return_connection(native, take_fd(&sock));
	if (answer->result < 0) {
		*err = answer->err;
		close_all(fds, count);
		return answer->result;
	}
	memcpy(ret_fds, fds, count * sizeof(int));
	return 0;
}

/* The same; ret_fd gets the one descriptor that came with it, if wanted. */
static int call(struct native *native, const struct keeper_request *request,
	struct keeper_answer *answer, int *ret_fd, struct err *err)
{
	int none[1];

	return call_with(native, request, answer, ret_fd ? ret_fd : none, ret_fd ? 1 : 0, err);
}

static struct keeper_request request_for(enum keeper_kind kind, const char *id)
{
	struct keeper_request request = {.kind = kind};

	snprintf(request.id, sizeof(request.id), "%s", id);
	return request;
}

static const enum keeper_profile profiles[] = {
	[TEMPLATE_PROFILE_DEFAULT] = KEEPER_PROFILE_DEFAULT,
	[TEMPLATE_PROFILE_BROWSER] = KEEPER_PROFILE_BROWSER,
};

/* A request whose answer brings a link. */
static int call_for_link(struct native *native, const struct keeper_request *request, int *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_answer answer;
	int r = call(native, request, &answer, ret_link, err);

	if (r == 0)
		*ret_walls = answer.walls;
	return r;
}

static int native_start(struct driver *driver, const struct driver_spec *spec, int *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_BUILD, spec->id);

	request.profile = profiles[spec->profile];
	request.slot = spec->slot;
	request.next_slot = spec->next_slot;
	request.leads_out = spec->leads_out;
	request.limits = (struct keeper_limits){.memory_bytes = spec->resources.memory_bytes,
		.cpu_millis = spec->resources.cpu_millis,
		.pids = spec->resources.pids,
		.disk_bytes = native_from(driver)->limits_disk ? spec->resources.disk_bytes : 0};
	snprintf(request.hostname, sizeof(request.hostname), "%s", spec->hostname);
	return call_for_link(native_from(driver), &request, ret_link, ret_walls, err);
}

static int native_adopt(struct driver *driver, const char *id, int *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_ADOPT, id);

	return call_for_link(native_from(driver), &request, ret_link, ret_walls, err);
}

/* What the keeper's child says first is only looked at: the agent takes it, with what lies beside it. */
static int await_cell(int sock, struct err *err)
{
	struct err built;
	int r = fd_set_timeout(sock, CALL_TIMEOUT_MS);
	ssize_t n;

	if (r < 0)
		return err_from(err, r, "wait for a cell");
	n = recv(sock, &built, sizeof(built), MSG_PEEK | MSG_WAITALL);
	if (n != (ssize_t)sizeof(built) || built.kind < ERR_NONE || built.kind >= ERR_KIND_COUNT)
		return err_set(
			err, ERR_UNAVAILABLE, "the sandbox ended while a cell was built in it");
	if (built.kind == ERR_NONE)
		return 0;
	built.code[sizeof(built.code) - 1] = '\0';
	built.message[sizeof(built.message) - 1] = '\0';
	built.remedy[sizeof(built.remedy) - 1] = '\0';
	*err = built;
	return -EIO;
}

static int native_cell(struct driver *driver, const char *id, int *ret_sock, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_CELL, id);
	struct keeper_answer answer;
	auto_fd int sock = -1;
	int r = call(native_from(driver), &request, &answer, &sock, err);

	if (r == 0)
		r = await_cell(sock, err);
	if (r == 0)
		*ret_sock = take_fd(&sock);
	return r;
}

static void translate_stats(const struct keeper_stats *from, struct driver_stats *to)
{
	*to = (struct driver_stats){.cpu_us = from->cpu_us,
		.memory_bytes = from->memory_bytes,
		.memory_peak_bytes = from->memory_peak_bytes,
		.memory_limit_bytes = from->memory_limit_bytes,
		.pids = from->pids,
		.pids_limit = from->pids_limit,
		.oom_kills = from->oom_kills};
	snprintf(to->oom_victim, sizeof(to->oom_victim), "%.*s", (int)sizeof(from->oom_victim) - 1,
		from->oom_victim);
}

static int native_stop(
	struct driver *driver, const char *id, struct driver_end *ret_end, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_KILL, id);
	struct keeper_answer answer;
	int r = call(native_from(driver), &request, &answer, NULL, err);

	if (r == 0 && ret_end) {
		*ret_end = (struct driver_end){.ended = answer.wait_status >= 0,
			.wait_status = answer.wait_status,
			.cause = answer.err};
		translate_stats(&answer.stats, &ret_end->last);
	}
	return r;
}

static int native_freeze(struct driver *driver, const char *id, bool freeze, struct err *err)
{
	struct keeper_request request = request_for(freeze ? KEEPER_FREEZE : KEEPER_THAW, id);
	struct keeper_answer answer;

	return call(native_from(driver), &request, &answer, NULL, err);
}

static int native_stats(
	struct driver *driver, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_STATS, id);
	struct keeper_answer answer;
	int r = call(native_from(driver), &request, &answer, NULL, err);

	if (r == 0)
		translate_stats(&answer.stats, ret_stats);
	return r;
}

static int native_usage(
	struct driver *driver, const char *id, struct driver_usage *ret_usage, struct err *err)
{
	struct native *native = native_from(driver);
	struct keeper_request request = request_for(KEEPER_USAGE, id);
	struct keeper_answer answer;
	int r = call(native, &request, &answer, NULL, err);

	if (r == 0)
		*ret_usage = (struct driver_usage){.bytes = answer.stats.disk_bytes,
			.files = answer.stats.disk_files,
			.files_limit = native->limits_disk ? answer.stats.disk_files_limit : 0};
	return r;
}

static int native_resize(
	struct driver *driver, const char *id, uint64_t disk_bytes, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_RESIZE, id);
	struct native *native = native_from(driver);
	struct keeper_answer answer;

	/* As it would be built: it may have been with a limit, by a daemon before this one. */
	request.limits.disk_bytes = native->limits_disk ? disk_bytes : 0;
	return call(native, &request, &answer, NULL, err);
}

static int native_clean(
	struct driver *driver, const char *id, uint32_t slot, unsigned parts, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_CLEAN, id);
	struct keeper_answer answer;

	request.slot = slot;
	request.parts = ((parts & DRIVER_PART_SYSTEM) ? KEEPER_PART_SYSTEM : 0) |
			((parts & DRIVER_PART_SCRATCH) ? KEEPER_PART_SCRATCH : 0) |
			((parts & DRIVER_PART_ALL) ? KEEPER_PART_LAYER_DIR : 0) |
			((parts & DRIVER_PART_WORKSPACE) ? KEEPER_PART_WORKSPACE : 0);
	return call(native_from(driver), &request, &answer, NULL, err);
}

static int native_list(struct driver *driver, bool stored, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct keeper_request request = request_for(stored ? KEEPER_STORED : KEEPER_LIST, after);
	struct keeper_answer answer;
	int r = call(native_from(driver), &request, &answer, NULL, err);

	if (r < 0)
		return r;
	memcpy(ids, answer.ids, sizeof(answer.ids));
	return (int)answer.count;
}

static int native_open_exits(
	struct driver *driver, const char *id, struct driver_exits *ret_exits, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_EXITS, id);
	struct keeper_answer answer;
	int fds[KEEPER_EXIT_COUNT];
	int r = call_with(native_from(driver), &request, &answer, fds, KEEPER_EXIT_COUNT, err);

	if (r == 0)
		*ret_exits = (struct driver_exits){.proxy_fd = fds[KEEPER_EXIT_PROXY],
			.dns_fd = fds[KEEPER_EXIT_DNS],
			.dns_stream_fd = fds[KEEPER_EXIT_DNS_STREAM],
			.is_transparent = answer.is_transparent};
	return r;
}

static int native_open_socket(struct driver *driver, const char *id, int *ret_fd, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_SOCKET, id);
	struct keeper_answer answer;

	return call(native_from(driver), &request, &answer, ret_fd, err);
}

static int native_shutdown(struct driver *driver, struct err *err)
{
	struct keeper_request request = {.kind = KEEPER_SHUTDOWN};
	struct keeper_answer answer;

	return call(native_from(driver), &request, &answer, NULL, err);
}

static void native_close(struct driver *driver)
{
	struct native *native = native_from(driver);

	while (native->idle_count > 0)
		close(native->idle[--native->idle_count]);
	fd_close(native->watch_fd);
	pthread_mutex_destroy(&native->lock);
	free(native);
}

static const struct driver_ops native_ops = {
	.name = "native",
	.start = native_start,
	.adopt = native_adopt,
	.cell = native_cell,
	.stop = native_stop,
	.freeze = native_freeze,
	.stats = native_stats,
	.usage = native_usage,
	.resize = native_resize,
	.clean = native_clean,
	.list = native_list,
	.open_exits = native_open_exits,
	.open_socket = native_open_socket,
	.shutdown = native_shutdown,
	.close = native_close,
};

int native_probe(const char *socket_path)
{
	struct sockaddr_un address;
	int r = make_address(socket_path, &address);

	if (r == 0)
		r = connect_to(&address);
	fd_close(r);
	return r < 0 ? r : 0;
}

int native_watch_fd(struct driver *driver)
{
	struct native *native = native_from(driver);

	if (native->watch_fd < 0)
		native->watch_fd = connect_to(&native->address);
	return native->watch_fd;
}

int native_open(
	const char *socket_path, bool limits_disk, struct driver **ret_driver, struct err *err)
{
	struct native *native = mem_new(sizeof(*native));
	struct keeper_request request = {
		.kind = KEEPER_HELLO, .limits.disk_bytes = limits_disk ? 1 : 0};
	struct keeper_answer answer;
	int r;

	native->base.ops = &native_ops;
	native->limits_disk = limits_disk;
	native->watch_fd = -1;
	pthread_mutex_init(&native->lock, NULL);
	r = make_address(socket_path, &native->address);
	if (r < 0)
		r = err_from(err, r, "keeper socket %s", socket_path);
	else
		r = call(native, &request, &answer, NULL, err);
	if (r == 0 && answer.version != KEEPER_VERSION)
		r = err_explain(err, ERR_UNAVAILABLE, "keeper_version",
			"end the old one with `sandlot shutdown`, then start again",
			"the running keeper speaks version %u, not %u", answer.version,
			KEEPER_VERSION);
	if (r < 0) {
		native_close(&native->base);
		return r;
	}
	*ret_driver = &native->base;
	return 0;
}
