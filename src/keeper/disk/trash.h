/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes files. A function that removes something renames it into trash/, which takes no time
 * however large a tree is. The trash remover, a long-lived helper of the keeper, moves it from
 * there into shredder/ and deletes it, so that slow work never holds the lock of a directory that
 * is in use. A disk has both directories of its own; the child that unmounts it empties them.
 */
#pragma once

#include "keeper/process/helpers.h"

#include <stdint.h>

struct trash {
	int waiting_fd;	 /* trash/: what is to be removed */
	int removing_fd; /* shredder/: what is being removed */
};

struct trash_remover {
	struct helper helper;
	const struct trash *trash;
	int64_t seen_ns; /* when the trash had been touched last, as of the last wake; 0: not known */
};

/* Moves dirfd/name into the trash; a name that does not exist is fine. */
int trash_discard(const struct trash *trash, int dirfd, const char *name, struct err *err)
	must_check;

/* Removes all there is in the trash, however deep. */
void trash_empty(const struct trash *trash);

/*
 * Wakes the trash remover if the trash was touched since the last call; most sandboxes end without
 * discarding anything there.
 */
void trash_wake_remover(struct trash_remover *remover);

/* Starts the trash remover. It empties the trash at once, and whenever it is woken. */
void trash_start_remover(
	struct trash_remover *remover, const struct trash *trash, struct helpers *helpers);
