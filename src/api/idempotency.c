/* SPDX-License-Identifier: Apache-2.0 */
#include "api/idempotency.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "store/access/store_idempotency.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>

struct waiter {
	struct waiter *next;
	struct request *req; /* held */
};

struct idempotency {
	struct idempotency *next;
	struct idempotency_keys *all;
	struct store *store;
	struct owner owner;
	char key[IDEMPOTENCY_KEY_MAX + 1];
	uint8_t print[IDEMPOTENCY_PRINT_LEN];
	int64_t resumed_ms;
	struct waiter *waiters;
};

struct idempotency_keys {
	pthread_mutex_t lock; /* comes before the store's */
	struct idempotency *first;
};

struct idempotency_keys *idempotency_keys_new(void)
{
	struct idempotency_keys *idempotency_keys = mem_new(sizeof(*idempotency_keys));

	pthread_mutex_init(&idempotency_keys->lock, NULL);
	return idempotency_keys;
}

void idempotency_keys_free(struct idempotency_keys *idempotency_keys)
{
	if (!idempotency_keys)
		return;
	pthread_mutex_destroy(&idempotency_keys->lock);
	free(idempotency_keys);
}

static int check_key(const char *key, struct err *err)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < len; i++)
		if (key[i] < '!' || key[i] > '~')
			len = 0;
	if (len < 1 || len > IDEMPOTENCY_KEY_MAX)
		return err_explain(err, ERR_INVALID, "invalid_idempotency_key", NULL,
			"Idempotency-Key must be 1 to %d printable characters without spaces",
			IDEMPOTENCY_KEY_MAX);
	return 0;
}

/* The same members and values are the same request, in whatever order and spacing they came. */
static void take_print(const struct request *req, uint8_t print[IDEMPOTENCY_PRINT_LEN])
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

int idempotency_status(const json_t *made)
{
	const char *status = json_string_value(json_object_get(made, "status"));

	return status && strcmp(status, "creating") == 0 ? 202 : 201;
}

static void answer_again(struct request *req, const char *id, json_t *made)
{
	request_set_object(req, id);
	request_answer_header(req, "Idempotency-Replayed", "true");
	request_answer_json(req, idempotency_status(made), made);
}

/* The one under way with this key; the lock is held. */
static struct idempotency *find(
	struct idempotency_keys *all, const struct owner *owner, const char *key)
{
	struct idempotency *idempotency = all->first;

	while (idempotency &&
		(strcmp(idempotency->key, key) != 0 ||
			strcmp(idempotency->owner.organization, owner->organization) != 0 ||
			strcmp(idempotency->owner.user, owner->user) != 0))
		idempotency = idempotency->next;
	return idempotency;
}

/* 1: it is answered when the other one is. The lock is held, here and below. */
static int wait_for(struct idempotency *idempotency, struct request *req,
	const uint8_t print[IDEMPOTENCY_PRINT_LEN], struct err *err)
{
	struct waiter *waiter;

	if (memcmp(idempotency->print, print, IDEMPOTENCY_PRINT_LEN) != 0)
		return refuse_other(idempotency->key, err);
	waiter = mem_new(sizeof(*waiter));
	waiter->req = req;
	waiter->next = idempotency->waiters;
	idempotency->waiters = waiter;
	request_hold(req, NULL, NULL);
	return 1;
}

static struct idempotency *start(struct api *api, const struct owner *owner, const char *key,
	const struct idempotency_record *record, bool is_known)
{
	struct idempotency *idempotency = mem_new(sizeof(*idempotency));

	idempotency->all = api->idempotency_keys;
	idempotency->store = engine_store(api->engine);
	idempotency->owner = *owner;
	snprintf(idempotency->key, sizeof(idempotency->key), "%s", key);
	memcpy(idempotency->print, record->print, sizeof(idempotency->print));
	idempotency->resumed_ms = is_known ? record->created_at_ms : 0;
	idempotency->next = api->idempotency_keys->first;
	api->idempotency_keys->first = idempotency;
	return idempotency;
}

static int begin(struct api *api, struct request *req, const char *key, char id[ID_LEN + 1],
	struct idempotency **ret_replay, struct err *err)
{
	struct owner owner = api_owner(req);
	struct idempotency_record record = {0};
	uint8_t print[IDEMPOTENCY_PRINT_LEN];
	struct idempotency *other;
	json_t *made;
	int r;

	take_print(req, print);
	other = find(api->idempotency_keys, &owner, key);
	if (other)
		return wait_for(other, req, print, err);
	memcpy(record.print, print, sizeof(print));
	memcpy(record.object, id, sizeof(record.object));
	r = store_idempotency_begin(engine_store(api->engine), &owner, key, &record, err);
	fail_point("create.key_reserved");
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

int idempotency_begin(struct api *api, struct request *req, char id[ID_LEN + 1],
	struct idempotency **ret_replay, struct err *err)
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
	pthread_mutex_lock(&api->idempotency_keys->lock);
	r = begin(api, req, key, id, ret_replay, err);
	pthread_mutex_unlock(&api->idempotency_keys->lock);
	return r;
}

int64_t idempotency_resumed_ms(const struct idempotency *idempotency)
{
	return idempotency ? idempotency->resumed_ms : 0;
}

static void remember(struct idempotency *idempotency, const json_t *made)
{
	auto_free char *text = made ? json_dumps(made, JSON_COMPACT) : NULL;
	struct err err;
	int r;

	if (text)
		r = store_idempotency_finish(
			idempotency->store, &idempotency->owner, idempotency->key, text, &err);
	else
		r = store_idempotency_forget(
			idempotency->store, &idempotency->owner, idempotency->key, &err);
	if (r < 0)
		log_error("an idempotency key is not as it should be: %s", err.message);
	fail_point("create.key_answered");
}

void idempotency_end(struct idempotency *idempotency, const json_t *made, const struct err *err)
{
	struct waiter *waiter, *next;
	struct idempotency **at;

	if (!idempotency)
		return;
	/* First: whoever comes when it is no longer under way must find the answer. */
	remember(idempotency, made);
	pthread_mutex_lock(&idempotency->all->lock);
	for (at = &idempotency->all->first; *at != idempotency; at = &(*at)->next)
		;
	*at = idempotency->next;
	pthread_mutex_unlock(&idempotency->all->lock);
	for (waiter = idempotency->waiters; waiter; waiter = next) {
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
	free(idempotency);
}
