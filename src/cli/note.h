/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon writes down in its data directory for the command line of its machine: where it listens, and with TLS the
 * key by which it is known there, since no certificate is made out for that address. It does so again when it has changed.
 */
#pragma once

#include "base/mem.h"

#include <limits.h>

#define NOTE_LINE_MAX 256

struct note {
	char path[PATH_MAX]; /* where it stands */
	char url[NOTE_LINE_MAX + 8];
	char pin[NOTE_LINE_MAX]; /* the key, "sha256//..."; "" without TLS */
};

/* 1; 0 if that daemon has ended; -errno if none is known. */
int note_read(const char *path, struct note *ret_note) must_check;

/* Of the data directory that was named, or else of the user's own daemon, or of root's. */
int note_find(struct note *ret_note) must_check;
