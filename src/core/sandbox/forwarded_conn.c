/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/forwarded_conn.h"

#include "core/engine/sandbox_state.h"

struct forwarded_conn {
	struct sandbox *sandbox;
	struct forwarded_conn *next, **at; /* under sandbox.state, as all that follows */
	bool is_cut;
	void (*cut)(void *arg); /* NULL: not tied yet */
	void *arg;
};

struct forwarded_conn *forwarded_conn_new(struct sandbox *sandbox)
{
	struct forwarded_conn *conn = mem_new(sizeof(*conn));

	conn->sandbox = sandbox_ref(sandbox);
	pthread_mutex_lock(&sandbox->state);
	conn->at = &sandbox->conns;
	conn->next = sandbox->conns;
	if (conn->next)
		conn->next->at = &conn->next;
	sandbox->conns = conn;
	pthread_mutex_unlock(&sandbox->state);
	return conn;
}

void forwarded_conn_free(struct forwarded_conn *conn)
{
	if (!conn)
		return;
	pthread_mutex_lock(&conn->sandbox->state);
	*conn->at = conn->next;
	if (conn->next)
		conn->next->at = conn->at;
	pthread_mutex_unlock(&conn->sandbox->state);
	sandbox_unref(conn->sandbox);
	free(conn);
}

void forwarded_conn_tie(struct forwarded_conn *conn, void (*cut)(void *arg), void *arg)
{
	pthread_mutex_lock(&conn->sandbox->state);
	conn->cut = cut;
	conn->arg = arg;
	if (conn->is_cut)
		cut(arg);
	pthread_mutex_unlock(&conn->sandbox->state);
}

void forwarded_conn_cut_all(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct forwarded_conn *conn = sandbox->conns; conn; conn = conn->next) {
		if (conn->cut && !conn->is_cut)
			conn->cut(conn->arg);
		conn->is_cut = true;
	}
	pthread_mutex_unlock(&sandbox->state);
}
