/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file_sender.h"

#include "base/fd.h"
#include "base/share_pool.h"
#include "http/server/request/request_answer.h"

#include <errno.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define STALL_MS 60000
#define PIECE	 (1u << 20)

struct file_sender {
	int file_fd, out_fd;
	uint64_t size;
	struct share *share;
};

/* The answer has its size in front, so one that is cut short is known as such. */
static void *run(void *arg)
{
	struct file_sender *sender = arg;

	while (sender->size > 0) {
		size_t want = sender->size < PIECE ? (size_t)sender->size : PIECE;
		ssize_t n = sendfile(sender->out_fd, sender->file_fd, NULL, want);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			break;
		sender->size -= n > 0 ? (uint64_t)n : 0;
	}
	fd_close(sender->file_fd);
	fd_close(sender->out_fd);
	share_give_back(sender->share);
	free(sender);
	return NULL;
}

static int start(struct file_sender *sender)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = -pthread_create(&thread, &attr, run, sender);
	pthread_attr_destroy(&attr);
	return r;
}

int file_sender_answer(struct request *req, int status, const char *type, int file_fd,
	uint64_t size, struct share *share, struct err *err)
{
	struct file_sender *sender;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		fd_close(file_fd);
		return err_sys(err, "make a socket pair");
	}
	sender = mem_new(sizeof(*sender));
	*sender = (struct file_sender){
		.file_fd = file_fd, .out_fd = pair[1], .size = size, .share = share};
	r = fd_set_timeout(pair[1], STALL_MS);
	if (r == 0)
		r = fd_set_nonblocking(pair[0]);
	if (r == 0)
		r = start(sender);
	if (r < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		fd_close(file_fd);
		free(sender);
		return err_from(err, r, "send a file");
	}
	request_answer_fd(req, status, type, pair[0], size);
	return 0;
}
