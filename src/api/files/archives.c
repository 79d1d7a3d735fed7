/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees as tar archives: in by tar_reader.c, on the worker's thread; out by tar_writer.c, on a thread of
 * its own. The sandbox sees plain items only.
 */
#include "api/files/file_entry.h"
#include "api/files/tar_writer.h"
#include "api/handlers.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "core/files/file_channel.h"
#include "core/files/tar_reader.h"
#include "model/access/owner.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PACK_TIMEOUT_MS 60000
#define PACK_BUFFER	(1 << 20)

/* --- in --- */

static ssize_t read_body(void *arg, void *data, size_t size)
{
	return request_read(arg, data, size);
}

/*
 * After a failure of ours: the helper sees the end of the items, removes the file that it has half of,
 * and then says that it failed. Who is answered after that finds nothing of it.
 */
static void await_cleanup(int fd, const char *path)
{
	struct file_channel_answer answer;
	struct err err = {0};

	if (shutdown(fd, SHUT_WR) < 0)
		return;
	if (file_channel_read_answer(fd, path, &answer, &err) == 0)
		log_info("a sandbox says that it unpacked an archive whose end was not sent");
}

HANDLER(archives_unpack)
{
	struct api *api = context;
	const struct tar_reader_source source = {read_body, req};
	struct tar_reader_result result;
	struct sandbox_record record;
	struct file_channel_answer answer;
	char path[AGENT_PATH_MAX];
	auto_fd int fd = -1;
	struct sandbox *sandbox;
	uint64_t disk_bytes;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = file_channel_ask(sandbox, AGENT_FILE_UNPACK, path, NULL, &answer, &fd, err)) <
			0)
		return r;
	sandbox_read(sandbox, &record);
	disk_bytes = record.resources.disk_bytes;
	sandbox_record_fini(&record);
	r = tar_reader_run(&source, fd, disk_bytes, &result, err);
	if (r == 0 || result.is_broken)
		r = file_channel_read_answer(fd, path, &answer, err);
	else
		await_cleanup(fd, path);
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
struct tar_writer {
	int items_fd;
	int out_fd;
	struct share *share; /* its place among them */
};

static void *run_packing(void *arg)
{
	struct tar_writer *tar_writer = arg;
	uint8_t mark;
	int r = tar_writer_run(tar_writer->items_fd, tar_writer->out_fd);

	if (r == 0)
		r = fd_read_full(tar_writer->out_fd, &mark, 1);
	if (r < 0)
		log_info("an archive download was cut: %s", strerror(-r));
	fd_close(tar_writer->items_fd);
	fd_close(tar_writer->out_fd);
	share_give_back(tar_writer->share);
	free(tar_writer);
	return NULL;
}

static int start_packing(int items_fd, struct share *share, int *ret_fd, struct err *err)
{
	struct tar_writer *tar_writer;
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2], size = PACK_BUFFER, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket pair");
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	tar_writer = mem_new(sizeof(*tar_writer));
	*tar_writer = (struct tar_writer){.items_fd = items_fd, .out_fd = pair[1], .share = share};
	r = fd_write_full(pair[0], "", 1);
	if (r == 0)
		r = fd_set_timeout(pair[1], PACK_TIMEOUT_MS);
	if (r == 0)
		r = fd_set_nonblocking(pair[0]);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (r == 0)
		r = -pthread_create(&thread, &attr, run_packing, tar_writer);
	pthread_attr_destroy(&attr);
	if (r < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		free(tar_writer);
		return err_from(err, r, "start packing");
	}
	*ret_fd = pair[0];
	return 0;
}

/* A place among those that are packed at a time. */
static int take_place(
	struct request *req, struct api *api, struct share **ret_share, struct err *err)
{
	struct owner owner = api_owner(req);
	int r = share_pool_take(
		api->packers, owner_key(&owner), request_principal(req)->is_operator, ret_share);

	if (r == 0)
		return 0;
	return err_explain(err, ERR_RATE, "too_many_downloads",
		"wait for some of the downloads to end before you begin more",
		r == -EDQUOT ? "you download as many archives at a time as one owner may"
			     : "as many archives are being downloaded as may be");
}

HANDLER(archives_pack)
{
	struct api *api = context;
	struct file_channel_answer answer;
	char path[AGENT_PATH_MAX], disposition[FILE_ENTRY_DISPOSITION_LEN];
	auto_fd int items_fd = -1;
	struct share *share = NULL;
	struct sandbox *sandbox;
	int out_fd = -1, r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = take_place(req, api, &share, err)) < 0)
		return r;
	r = file_channel_ask(sandbox, AGENT_FILE_PACK, path, NULL, &answer, &items_fd, err);
	if (r == 0)
		r = start_packing(items_fd, share, &out_fd, err);
	if (r < 0) {
		share_give_back(share);
		return r;
	}
	take_fd(&items_fd);
	file_entry_disposition(path, ".tar", disposition);
	request_answer_header(req, "Content-Disposition", disposition);
	request_answer_fd(req, 200, "application/x-tar", out_fd, UINT64_MAX);
	return 0;
}
