/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees as tar archives: in by unpacking.c, on the worker's thread; out by packing.c, on a thread of
 * its own. The sandbox sees plain items only.
 */
#include "api/file_entry.h"
#include "api/handlers.h"
#include "api/packing.h"
#include "api/unpacking.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PACKERS_MAX	16
#define PACK_TIMEOUT_MS 60000
#define PACK_BUFFER	(1 << 20)

/* --- in --- */

static ssize_t read_body(void *arg, void *data, size_t size)
{
	return request_read(arg, data, size);
}

HANDLER(archives_unpack)
{
	struct api *api = context;
	const struct unpacking_source source = {read_body, req};
	struct unpacking_result result;
	struct sandbox_record record;
	struct channel_answer answer;
	char path[AGENT_PATH_MAX];
	auto_fd int fd = -1;
	struct sandbox *sandbox;
	uint64_t disk_bytes;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = channel_ask(sandbox, AGENT_FILE_UNPACK, path, NULL, &answer, &fd, err)) < 0)
		return r;
	sandbox_read(sandbox, &record);
	disk_bytes = record.resources.disk_bytes;
	sandbox_record_fini(&record);
	r = unpacking_run(&source, fd, disk_bytes, &result, err);
	if (r == 0 || result.is_broken)
		r = channel_read_answer(fd, path, &answer, err);
	/* A link to nothing, say: the directory is there, so the fault is in the archive. */
	if (r < 0 && err->kind == ERR_NOT_FOUND && err->message[0] != '/')
		r = err_explain(err, ERR_INVALID, "invalid_archive", NULL,
			"the archive has a link to something that is not in it");
	if (r == 0)
		request_answer_json(req, 200,
			json_pack("{s:I, s:I}", "entries", (json_int_t)result.entries, "bytes",
				(json_int_t)result.bytes));
	return r;
}

/* --- out --- */

/*
 * A thread of its own turns items into tar and writes them to a socket that the connection pumps. The
 * connection must tell a whole archive from one that was cut, so before all else it sends one byte:
 * if the thread fails it closes its end with that byte unread, and the kernel makes that a reset.
 */
struct packing {
	int items_fd;
	int out_fd;
	atomic_int *running;
};

static void *run_packing(void *arg)
{
	struct packing *packing = arg;
	uint8_t mark;
	int r = packing_run(packing->items_fd, packing->out_fd);

	if (r == 0)
		r = fd_read_full(packing->out_fd, &mark, 1);
	if (r < 0)
		log_info("an archive download was cut: %s", strerror(-r));
	fd_close(packing->items_fd);
	fd_close(packing->out_fd);
	atomic_fetch_sub(packing->running, 1);
	free(packing);
	return NULL;
}

static int start_packing(int items_fd, atomic_int *running, int *ret_fd, struct err *err)
{
	struct packing *packing;
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2], size = PACK_BUFFER, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket pair");
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	packing = mem_new(sizeof(*packing));
	*packing = (struct packing){.items_fd = items_fd, .out_fd = pair[1], .running = running};
	r = fd_write_full(pair[0], "", 1);
	if (r == 0)
		r = fd_set_timeout(pair[1], PACK_TIMEOUT_MS);
	if (r == 0)
		r = fd_set_nonblocking(pair[0]);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (r == 0)
		r = -pthread_create(&thread, &attr, run_packing, packing);
	pthread_attr_destroy(&attr);
	if (r < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		free(packing);
		return err_from(err, r, "start packing");
	}
	*ret_fd = pair[0];
	return 0;
}

HANDLER(archives_pack)
{
	struct api *api = context;
	struct channel_answer answer;
	char path[AGENT_PATH_MAX], disposition[FILE_ENTRY_DISPOSITION_LEN];
	auto_fd int items_fd = -1;
	struct sandbox *sandbox;
	int out_fd = -1, r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0)
		return r;
	if (atomic_fetch_add(&api->packers, 1) >= PACKERS_MAX)
		r = err_set(err, ERR_RATE, "%d archives are being downloaded already", PACKERS_MAX);
	if (r == 0)
		r = channel_ask(sandbox, AGENT_FILE_PACK, path, NULL, &answer, &items_fd, err);
	if (r == 0)
		r = start_packing(items_fd, &api->packers, &out_fd, err);
	if (r < 0) {
		atomic_fetch_sub(&api->packers, 1);
		return r;
	}
	take_fd(&items_fd);
	file_entry_disposition(path, ".tar", disposition);
	request_answer_header(req, "Content-Disposition", disposition);
	request_answer_fd(req, 200, "application/x-tar", out_fd, UINT64_MAX);
	return 0;
}
