/* SPDX-License-Identifier: Apache-2.0 */
#include "http/websocket_list.h"

#include "base/clock.h"
#include "http/server_private.h"
#include "http/websocket_private.h"

#include <string.h>

void websocket_list_add(struct server *server, struct websocket_member *member)
{
	member->next = server->websockets;
	if (member->next)
		member->next->prev = member;
	server->websockets = member;
}

void websocket_list_remove(struct server *server, struct websocket_member *member)
{
	pthread_mutex_lock(&server->lock);
	if (member->prev)
		member->prev->next = member->next;
	else
		server->websockets = member->next;
	if (member->next)
		member->next->prev = member->prev;
	if (!server->websockets)
		pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

static void dismiss(const struct websocket_member *member)
{
	websocket_close(member->websocket, WEBSOCKET_REFUSED, "the token is no longer valid");
}

void websocket_list_evict(struct server *server, const char *token_id)
{
	pthread_mutex_lock(&server->lock);
	for (struct websocket_member *member = server->websockets; member; member = member->next) {
		if (strcmp(member->principal.token_id, token_id) == 0)
			dismiss(member);
	}
	pthread_mutex_unlock(&server->lock);
}

void websocket_list_sweep(struct server *server, uint64_t now_ms)
{
	int64_t wall_ms = clock_wall_ms();

	pthread_mutex_lock(&server->lock);
	for (struct websocket_member *member = server->websockets; member; member = member->next) {
		if (principal_is_over(&member->principal, wall_ms))
			dismiss(member);
		websocket_ping(member->websocket, now_ms);
	}
	pthread_mutex_unlock(&server->lock);
}

void websocket_list_close(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct websocket_member *member = server->websockets; member; member = member->next)
		websocket_close(member->websocket, WEBSOCKET_GOING_AWAY, NULL);
	pthread_mutex_unlock(&server->lock);
}

void websocket_list_cut(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct websocket_member *member = server->websockets; member; member = member->next)
		websocket_cut(member->websocket);
	while (server->websockets)
		pthread_cond_wait(&server->changed, &server->lock);
	pthread_mutex_unlock(&server->lock);
}
