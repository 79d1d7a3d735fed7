/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/reply.h"

#include "base/log.h"
#include "wire/fdpass.h"

#include <string.h>
#include <sys/socket.h>

void reply_send(int conn, const struct keeper_answer *reply, const int *fds, size_t count)
{
	ssize_t n = fdpass_send(conn, reply, sizeof(*reply), fds, count, MSG_DONTWAIT);

	/* A daemon that went away or does not listen has no use for the answer. */
	if (n < 0)
		log_debug("answer not delivered: %s", strerror((int)-n));
}

void reply_result(int conn, int result, const struct err *err)
{
	struct keeper_answer reply = {
		.result = result, .version = KEEPER_VERSION, .wait_status = -1};

	if (result < 0)
		reply.err = *err;
	reply_send(conn, &reply, NULL, 0);
}

void reply_killed(int conn, const struct held *held)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	if (held) {
		reply.wait_status = held->wait_status;
		reply.err = held->err;
		reply.stats = held->last;
	}
	reply_send(conn, &reply, NULL, 0);
}
