/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be removed. Removing means renaming into trash/, which takes no time however large a tree is;
 * who has time takes it from there into shredder/, so that slow work never holds the lock of a directory that
 * somebody needs. That is a child of the keeper, the janitor; or who clears up a disk, which has both
 * directories of its own.
 */
#pragma once

#include "keeper/storage.h"

/* Moves dirfd/name into the trash; a name that does not exist is fine. */
int trash_discard(const struct storage *storage, int dirfd, const char *name, struct err *err)
	must_check;

/* Removes all there is in the trash, however deep. */
void trash_empty(const struct storage *storage);
