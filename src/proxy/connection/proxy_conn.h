/* SPDX-License-Identifier: Apache-2.0 */
/* What moves a connection: its sockets, its clock, and the way that was found for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct proxy_config;
struct proxy_conn;
struct proxy_loop;

struct proxy_conn *proxy_conn_open(
	struct proxy_loop *loop, const struct proxy_config *config, int fd, const char *address);
/* Something happened to a socket (arg): epoll's events; none: it has its next turn. */
void proxy_conn_ready(void *arg, uint32_t events);

/* Its time has come: to ask again, or to end. */
void proxy_conn_tick(struct proxy_conn *conn, uint64_t now_ms);

/* Whether it is between two requests, or before the first. */
bool proxy_conn_is_idle(const struct proxy_conn *conn);

/* Ends it, and has its loop drop it. */
void proxy_conn_cut(struct proxy_conn *conn);
