/* SPDX-License-Identifier: Apache-2.0 */
/* The uid ranges of sandboxes, as the files on disk say (uid_ranges.h). */
#include "base/log.h"
#include "driver/native/native_private.h"

#include <errno.h>
#include <string.h>

/* Asks the files themselves, which may have to be mounted. */
static int ask_range(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_OWNER, id);
	struct keeper_answer answer;
	int r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);

	if (r == 0)
		*ret_slot = answer.slot < KEEPER_SLOT_COUNT ? answer.slot : UID_RANGE_NONE;
	return r;
}

static int note_range(struct native *native, const char *id, uint32_t slot, struct err *err)
{
	int r;

	pthread_mutex_lock(&native->lock);
	r = uid_ranges_note(&native->ranges, id, slot);
	pthread_mutex_unlock(&native->lock);
	if (r == -EEXIST)
		return err_explain(err, ERR_CONFLICT, "uid_range_taken",
			"purge the other one, if it is not needed",
			"the files of %s belong to uid range %u, which is another sandbox's", id,
			slot);
	return r;
}

/* What one page of the list said of uid ranges. */
static void note_page(struct native *native, const struct keeper_answer *page)
{
	for (uint32_t i = 0; i < page->count; i++) {
		const char *id = page->ids[i];
		uint32_t slot = page->slots[i];
		struct err err;
		int r = 0;

		if (slot == KEEPER_SLOT_UNKNOWN)
			r = ask_range(native, id, &slot, &err);
		if (r == 0)
			r = note_range(native, id, slot, &err);
		if (r == 0)
			continue;
		log_warning("the uid range of %s is not known: %s", id, err.message);
		(void)!note_range(native, id, UID_RANGE_UNKNOWN, &err);
	}
}

/* The first who goes through all pages is the start of the daemon as a rule. */
int native_ranges_list(
	struct native *native, const char *after, struct keeper_answer *answer, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_STORED, after);
	bool is_next;
	int r = keeper_client_call(&native->keeper, &request, answer, NULL, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&native->lock);
	is_next = !native->knows_ranges && strcmp(after, native->noted_until) == 0;
	pthread_mutex_unlock(&native->lock);
	if (!is_next)
		return 0;
	note_page(native, answer);
	pthread_mutex_lock(&native->lock);
	if (answer->count == KEEPER_LIST_MAX)
		memcpy(native->noted_until, answer->ids[answer->count - 1],
			sizeof(native->noted_until));
	else
		native->knows_ranges = true;
	pthread_mutex_unlock(&native->lock);
	return 0;
}

/* Before the first range is given out: which ones do files on disk have? */
static int learn_ranges(struct native *native, struct err *err)
{
	struct keeper_answer answer;
	char after[ID_LEN + 1];
	bool is_known;
	int r = 0;

	do {
		pthread_mutex_lock(&native->lock);
		is_known = native->knows_ranges;
		memcpy(after, native->noted_until, sizeof(after));
		pthread_mutex_unlock(&native->lock);
		if (!is_known)
			r = native_ranges_list(native, after, &answer, err);
	} while (r == 0 && !is_known);
	return r;
}

int native_ranges_find(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
{
	int r = learn_ranges(native, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&native->lock);
	r = uid_ranges_find(&native->ranges, id, ret_slot);
	pthread_mutex_unlock(&native->lock);
	return r;
}

int native_ranges_take(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
{
	uint32_t slot = UID_RANGE_NONE;
	int r = native_ranges_find(native, id, &slot, err);

	if (r > 0 && slot == UID_RANGE_UNKNOWN) {
		r = ask_range(native, id, &slot, err);
		if (r == 0)
			r = note_range(native, id, slot, err);
	}
	if (r < 0)
		return r;
	if (slot == UID_RANGE_NONE) {
		pthread_mutex_lock(&native->lock);
		r = uid_ranges_take(&native->ranges, id, &slot);
		pthread_mutex_unlock(&native->lock);
	}
	if (r == -ENOSPC)
		return err_explain(err, ERR_UNAVAILABLE, "no_uid_range",
			"purge sandboxes that are not needed",
			"all %d uid ranges are taken by sandboxes and kept workspaces",
			KEEPER_SLOT_COUNT);
	*ret_slot = slot;
	return 0;
}

uint32_t native_ranges_next(struct native *native)
{
	uint32_t slot;

	pthread_mutex_lock(&native->lock);
	slot = uid_ranges_next(&native->ranges);
	pthread_mutex_unlock(&native->lock);
	return slot;
}

void native_ranges_release(struct native *native, const char *id)
{
	pthread_mutex_lock(&native->lock);
	uid_ranges_release(&native->ranges, id);
	pthread_mutex_unlock(&native->lock);
}
