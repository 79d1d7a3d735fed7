/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/backups.h"

#include "base/clock.h"
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ROUND_MS 60000u
#define HOUR_MS	 3600000u
#define DAY_MS	 (24 * HOUR_MS)

struct backups {
	struct store *store;
	struct store_backup_rule rule;
	pthread_t thread;
	pthread_mutex_t writing; /* held while one is written; before `lock` */

	pthread_mutex_t lock; /* what follows */
	uint64_t due_ms;      /* by the steady clock */
	bool is_first;	      /* there was none before: what it holds may be next to nothing */
	pthread_cond_t changed;
	bool is_closing;
	bool has_failed;
	struct err why;
};

uint64_t backups_first_due_ms(bool is_any, int64_t newest_age_ms)
{
	if (!is_any || newest_age_ms < 0 || newest_age_ms >= (int64_t)DAY_MS)
		return 0;
	return DAY_MS - (uint64_t)newest_age_ms;
}

/* The newest there is; false if there is none. */
static bool find_newest(
	const struct backups *backups, char ret_name[STORE_BACKUP_NAME_MAX], struct stat *ret_st)
{
	auto_free char *path = NULL;

	if (!store_backup_newest(backups->rule.dir, ret_name))
		return false;
	path = mem_printf("%s/%s", backups->rule.dir, ret_name);
	return stat(path, ret_st) == 0;
}

static uint64_t find_due(const struct backups *backups, bool *ret_is_any)
{
	char name[STORE_BACKUP_NAME_MAX];
	struct stat st = {0};

	*ret_is_any = find_newest(backups, name, &st);
	return backups_first_due_ms(
		*ret_is_any, clock_wall_ms() - (int64_t)st.st_mtim.tv_sec * 1000);
}

/* `writing` is held. */
static int write_one(struct backups *backups, struct err *err)
{
	struct err why = {0};
	int r = store_backup(backups->store, &backups->rule, &why);

	if (r < 0)
		log_error("no backup of the state was written to %s: %s", backups->rule.dir,
			why.message);
	pthread_mutex_lock(&backups->lock);
	backups->has_failed = r < 0;
	backups->why = why;
	backups->due_ms = clock_steady_ms() + (r < 0 || backups->is_first ? HOUR_MS : DAY_MS);
	backups->is_first = backups->is_first && r < 0;
	pthread_mutex_unlock(&backups->lock);
	*err = why;
	return r;
}

int backups_write(struct backups *backups, char ret_name[STORE_BACKUP_NAME_MAX],
	uint64_t *ret_bytes, struct err *err)
{
	struct stat st = {0};
	int r;

	pthread_mutex_lock(&backups->writing);
	r = write_one(backups, err);
	if (r == 0 && !find_newest(backups, ret_name, &st))
		r = err_set(err, ERR_INTERNAL, "the backup that was written is not there");
	pthread_mutex_unlock(&backups->writing);
	if (r == 0)
		*ret_bytes = (uint64_t)st.st_size;
	return r;
}

/* The thread's. */
static void write_if_due(struct backups *backups)
{
	struct err ignored;
	bool is_due;

	pthread_mutex_lock(&backups->writing);
	pthread_mutex_lock(&backups->lock);
	is_due = clock_steady_ms() >= backups->due_ms;
	pthread_mutex_unlock(&backups->lock);
	if (is_due)
		(void)!write_one(backups, &ignored);
	pthread_mutex_unlock(&backups->writing);
}

/* Waits for a round; false when it is to end. */
static bool wait_round(struct backups *backups)
{
	struct timespec until;
	bool goes_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ROUND_MS / 1000;
	pthread_mutex_lock(&backups->lock);
	while (!backups->is_closing &&
		pthread_cond_timedwait(&backups->changed, &backups->lock, &until) == 0)
		;
	goes_on = !backups->is_closing;
	pthread_mutex_unlock(&backups->lock);
	return goes_on;
}

static void *run(void *arg)
{
	struct backups *backups = arg;

	pthread_setname_np(pthread_self(), "backups");
	do {
		store_stamp_durably(backups->store);
		write_if_due(backups);
	} while (wait_round(backups));
	return NULL;
}

static void backups_free(struct backups *backups)
{
	pthread_mutex_destroy(&backups->lock);
	pthread_mutex_destroy(&backups->writing);
	pthread_cond_destroy(&backups->changed);
	free(backups);
}

int backups_open(struct store *store, const struct store_backup_rule *rule,
	struct backups **ret_backups, struct err *err)
{
	struct backups *backups = mem_new(sizeof(*backups));
	pthread_condattr_t attr;
	bool is_any;
	int r;

	backups->store = store;
	backups->rule = *rule;
	backups->due_ms = clock_steady_ms() + find_due(backups, &is_any);
	backups->is_first = !is_any;
	pthread_mutex_init(&backups->lock, NULL);
	pthread_mutex_init(&backups->writing, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&backups->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = -pthread_create(&backups->thread, NULL, run, backups);
	if (r < 0) {
		backups_free(backups);
		return err_from(err, r, "start the thread of backups");
	}
	*ret_backups = backups;
	return 0;
}

void backups_close(struct backups *backups)
{
	if (!backups)
		return;
	pthread_mutex_lock(&backups->lock);
	backups->is_closing = true;
	pthread_cond_signal(&backups->changed);
	pthread_mutex_unlock(&backups->lock);
	pthread_join(backups->thread, NULL);
	backups_free(backups);
}

const char *backups_dir(const struct backups *backups)
{
	return backups->rule.dir;
}

bool backups_has_failed(struct backups *backups, struct err *ret_why)
{
	bool has_failed;

	pthread_mutex_lock(&backups->lock);
	has_failed = backups->has_failed;
	if (has_failed)
		*ret_why = backups->why;
	pthread_mutex_unlock(&backups->lock);
	return has_failed;
}
