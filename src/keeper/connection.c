/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/connection.h"

#include "keeper/sandbox/reply.h"

#include <sys/epoll.h>
#include <unistd.h>

void connection_close(struct keeper *keeper, int conn)
{
	for (size_t i = 0; i < keeper->table.count; i++) {
		struct sandbox_entry *entry = keeper->table.sorted[i];

		if (entry->kill_waiter == conn)
			entry->kill_waiter = -1;
		if (entry->freeze.waiter == conn)
			entry->freeze.waiter = -1;
	}
	if (keeper->stop_waiter == conn)
		keeper->stop_waiter = -1;
	/* A child of ours may hold a copy, and as long as it does, epoll reports this number, which
	 * by then is another descriptor's. */
	epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, conn, NULL);
	close(conn);
}

pid_t connection_delegate(struct keeper *keeper, const struct keeper_request *request, int conn,
	int (*work)(struct keeper *keeper, const struct keeper_request *request,
		struct keeper_answer *reply, struct err *err))
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct err err = {0};
	pid_t pid = helpers_fork_asked(&keeper->helpers, &conn, &err);

	if (pid == 0) {
		reply.result = work(keeper, request, &reply, &err);
		reply.err = err;
		reply_send(conn, &reply, NULL, 0);
		_exit(0);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	connection_close(keeper, conn);
	return pid;
}
