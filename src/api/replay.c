/* SPDX-License-Identifier: Apache-2.0 */
#include "api/replay.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/store_replay.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>

struct waiter {
	struct waiter *next;
	struct request *req; /* held */
};

struct replay {
	struct replay *next;
	struct replays *all;
	struct store *store;
	struct owner owner;
	char key[REPLAY_KEY_MAX + 1];
	uint8_t print[REPLAY_PRINT_LEN];
	int64_t resumed_ms;
	struct waiter *waiters;
};

struct replays {
	pthread_mutex_t lock; /* comes before the store's */
	struct replay *first;
};

struct replays *replays_new(void)
{
	struct replays *replays = mem_new(sizeof(*replays));

	pthread_mutex_init(&replays->lock, NULL);
	return replays;
}

void replays_free(struct replays *replays)
{
	if (!replays)
		return;
	pthread_mutex_destroy(&replays->lock);
	free(replays);
}

static int check_key(const char *key, struct err *err)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < len; i++)
		if (key[i] < '!' || key[i] > '~')
			len = 0;
	if (len < 1 || len > REPLAY_KEY_MAX)
		return err_explain(err, ERR_INVALID, "invalid_idempotency_key", NULL,
			"Idempotency-Key must be 1 to %d printable characters without spaces",
			REPLAY_KEY_MAX);
	return 0;
}

/* The same members and values are the same request, in whatever order and spacing they came. */
static void take_print(const struct request *req, uint8_t print[REPLAY_PRINT_LEN])
{
	auto_free char *body =
		json_dumps(request_body(req), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	auto_free char *text = mem_printf("%s %s", request_action(req), body ? body : "");

	SHA256((const unsigned char *)text, strlen(text), print);
}

static int refuse_other(const char *key, struct err *err)
{
	return err_explain(err, ERR_UNPROCESSABLE, "idempotency_key_reused",
		"use a new key for a new request",
		"the Idempotency-Key %.64s was used for a different request", key);
}

static void answer_again(struct request *req, const char *id, json_t *made)
{
	request_set_object(req, id);
	request_answer_header(req, "Idempotency-Replayed", "true");
	request_answer_json(req, 201, made);
}

/* The one under way with this key; the lock is held. */
static struct replay *find(struct replays *all, const struct owner *owner, const char *key)
{
	struct replay *replay = all->first;

	while (replay && (strcmp(replay->key, key) != 0 ||
				 strcmp(replay->owner.organization, owner->organization) != 0 ||
				 strcmp(replay->owner.user, owner->user) != 0))
		replay = replay->next;
	return replay;
}

/* 1: it is answered when the other one is. The lock is held, here and below. */
static int wait_for(struct replay *replay, struct request *req,
	const uint8_t print[REPLAY_PRINT_LEN], struct err *err)
{
	struct waiter *waiter;

	if (memcmp(replay->print, print, REPLAY_PRINT_LEN) != 0)
		return refuse_other(replay->key, err);
	waiter = mem_new(sizeof(*waiter));
	waiter->req = req;
	waiter->next = replay->waiters;
	replay->waiters = waiter;
	request_hold(req, NULL, NULL);
	return 1;
}

static struct replay *start(struct api *api, const struct owner *owner, const char *key,
	const struct replay_record *record, bool is_known)
{
	struct replay *replay = mem_new(sizeof(*replay));

	replay->all = api->replays;
	replay->store = engine_store(api->engine);
	replay->owner = *owner;
	snprintf(replay->key, sizeof(replay->key), "%s", key);
	memcpy(replay->print, record->print, sizeof(replay->print));
	replay->resumed_ms = is_known ? record->created_at_ms : 0;
	replay->next = api->replays->first;
	api->replays->first = replay;
	return replay;
}

static int begin(struct api *api, struct request *req, const char *key, char id[ID_LEN + 1],
	struct replay **ret_replay, struct err *err)
{
	struct owner owner = api_owner(req);
	struct replay_record record = {0};
	uint8_t print[REPLAY_PRINT_LEN];
	struct replay *other;
	json_t *made;
	int r;

	take_print(req, print);
	other = find(api->replays, &owner, key);
	if (other)
		return wait_for(other, req, print, err);
	memcpy(record.print, print, sizeof(print));
	memcpy(record.object, id, sizeof(record.object));
	r = store_replay_begin(engine_store(api->engine), &owner, key, &record, err);
	if (r == 1 && memcmp(record.print, print, sizeof(print)) != 0) {
		free(record.answer);
		return refuse_other(key, err);
	}
	made = record.answer ? json_loads(record.answer, 0, NULL) : NULL;
	free(record.answer);
	if (r >= 0 && made) {
		answer_again(req, record.object, made);
		return 1;
	}
	if (r < 0)
		return r;
	memcpy(id, record.object, sizeof(record.object));
	*ret_replay = start(api, &owner, key, &record, r == 1);
	return 0;
}

int replay_begin(struct api *api, struct request *req, char id[ID_LEN + 1],
	struct replay **ret_replay, struct err *err)
{
	const char *key = request_header(req, "Idempotency-Key");
	int r;

	*ret_replay = NULL;
	if (!key)
		return 0;
	r = check_key(key, err);
	if (r < 0)
		return r;
	if (!id[0])
		id_new(clock_wall_ms(), id);
	pthread_mutex_lock(&api->replays->lock);
	r = begin(api, req, key, id, ret_replay, err);
	pthread_mutex_unlock(&api->replays->lock);
	return r;
}

int64_t replay_resumed_ms(const struct replay *replay)
{
	return replay ? replay->resumed_ms : 0;
}

static void remember(struct replay *replay, const json_t *made)
{
	auto_free char *text = made ? json_dumps(made, JSON_COMPACT) : NULL;
	struct err err;
	int r;

	if (text)
		r = store_replay_finish(replay->store, &replay->owner, replay->key, text, &err);
	else
		r = store_replay_forget(replay->store, &replay->owner, replay->key, &err);
	if (r < 0)
		log_error("an idempotency key is not as it should be: %s", err.message);
}

void replay_end(struct replay *replay, const json_t *made, const struct err *err)
{
	struct waiter *waiter, *next;
	struct replay **at;

	if (!replay)
		return;
	/* First: whoever comes when it is no longer under way must find the answer. */
	remember(replay, made);
	pthread_mutex_lock(&replay->all->lock);
	for (at = &replay->all->first; *at != replay; at = &(*at)->next)
		;
	*at = replay->next;
	pthread_mutex_unlock(&replay->all->lock);
	for (waiter = replay->waiters; waiter; waiter = next) {
		next = waiter->next;
		if (made) {
			answer_again(waiter->req, json_string_value(json_object_get(made, "id")),
				json_deep_copy(made));
			request_release(waiter->req);
		} else {
			request_release_error(waiter->req, err);
		}
		free(waiter);
	}
	free(replay);
}
