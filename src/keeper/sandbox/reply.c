/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox/reply.h"

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

void reply_killed(int conn, const struct sandbox_entry *entry)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	if (entry) {
		reply.wait_status = entry->wait_status;
		reply.err = entry->err;
		reply.stats = entry->last;
	}
	reply_send(conn, &reply, NULL, 0);
}

struct sandbox_entry *reply_find_running(
	const struct sandbox_table *table, const char *id, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(table, id);
	struct err err;

	if (entry && entry->pid)
		return entry;
	reply_result(conn, err_set(&err, ERR_NOT_FOUND, "sandbox %s does not run", id), &err);
	return NULL;
}
