/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows whether the keeper answers. A thread asks it every second on a connection of its own. So
 * the daemon knows of a keeper that hangs within seconds, however long the requests take that wait
 * for it at that moment (a large tree that is counted, a sandbox that ends slowly), and of a keeper
 * that died at once.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/un.h>

#define KEEPER_WATCH_SILENT_MS 5000 /* without an answer for this long it counts as hanging */

struct keeper_watch;

/* Connects to the keeper; ERR_UNAVAILABLE if there is none. One that is silent for longer than patience_ms counts as gone;
 * 0: it never does. */
int keeper_watch_open(const struct sockaddr_un *address, uint64_t patience_ms,
	struct keeper_watch **ret_watch, struct err *err) must_check;
void keeper_watch_close(struct keeper_watch *watch);

/* 0, or ERR_UNAVAILABLE with the reason: the keeper is gone, or does not answer. From any thread. */
int keeper_watch_check(struct keeper_watch *watch, struct err *err) must_check;

/* A descriptor that can be read while keeper_watch_check() fails. */
int keeper_watch_trouble_fd(const struct keeper_watch *watch);

/* A descriptor that can be read once the keeper is gone, or was silent for too long; that is for good. */
int keeper_watch_gone_fd(const struct keeper_watch *watch);

/* Set the two errors, for a caller that found out by itself. */
int keeper_watch_explain_gone(struct err *err, const char *why);
int keeper_watch_explain_silence(struct err *err);
