/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that writes a backup of the database each day, and lets the stamp of the workspaces follow what is
 * on the disk each minute. A backup that fails is tried again an hour later; nothing else hangs on it.
 */
#pragma once

#include "base/err.h"
#include "store/store.h"

struct backups;

/* The rule's texts are borrowed. */
int backups_open(struct store *store, const struct store_backup_rule *rule,
	struct backups **ret_backups, struct err *err) must_check;
void backups_close(struct backups *backups);

/* Writes one now, as long as it takes, and says how large it is. */
int backups_write(struct backups *backups, char ret_name[STORE_BACKUP_NAME_MAX],
	uint64_t *ret_bytes, struct err *err) must_check;

/* Where they are. */
const char *backups_dir(const struct backups *backups);

/* Why the last one failed, in err->message; false if it did not. */
bool backups_has_failed(struct backups *backups, struct err *ret_why);

/* When the next is due after a start: ms from now, by the age of the newest, which is negative if the clock
 * was set back since. */
uint64_t backups_first_due_ms(bool is_any, int64_t newest_age_ms);
