/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/secret/secret_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 1024 /* lists of secrets, each with those of one hash */

struct entry {
	struct secret_cache_secret secret; /* first, so that it is found from the outside */
	atomic_int refs;
	struct entry *next;
};

struct secret_cache {
	pthread_mutex_t lock;
	struct entry *places[PLACES];
};

struct secret_cache *secret_cache_new(void)
{
	struct secret_cache *cache = mem_new(sizeof(*cache));

	pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

static uint32_t hash_text(uint32_t hash, const char *text)
{
	do
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	while (*text++);
	return hash;
}

static struct entry **place_for(
	struct secret_cache *cache, const struct owner *owner, const char *name)
{
	uint32_t hash = hash_text(2166136261u, owner->organization);

	hash = hash_text(hash_text(hash, owner->user), name);
	return &cache->places[hash % PLACES];
}

/* Where the entry is linked, or would be. The lock is held. */
static struct entry **find(struct secret_cache *cache, const struct owner *owner, const char *name)
{
	struct entry **at = place_for(cache, owner, name);

	for (; *at; at = &(*at)->next) {
		const struct secret_record *record = &(*at)->secret.record;

		if (strcmp(record->name, name) == 0 &&
			strcmp(record->owner.user, owner->user) == 0 &&
			strcmp(record->owner.organization, owner->organization) == 0)
			break;
	}
	return at;
}

void secret_cache_secret_unref(const struct secret_cache_secret *secret)
{
	struct entry *entry = (struct entry *)secret;

	if (!entry || atomic_fetch_sub(&entry->refs, 1) > 1)
		return;
	explicit_bzero(entry->secret.value, strlen(entry->secret.value));
	free(entry->secret.value);
	free(entry);
}

static void unhook(struct entry **at)
{
	struct entry *entry = *at;

	if (!entry)
		return;
	*at = entry->next;
	secret_cache_secret_unref(&entry->secret);
}

void secret_cache_free(struct secret_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < PLACES; i++) {
		while (cache->places[i])
			unhook(&cache->places[i]);
	}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

void secret_cache_put(struct secret_cache *cache, const struct secret_record *record,
	const struct secret_server *server, const char *value)
{
	struct entry *entry = mem_new(sizeof(*entry)), **at;

	entry->secret.record = *record;
	entry->secret.server = *server;
	entry->secret.value = mem_strdup(value);
	entry->refs = 1;
	pthread_mutex_lock(&cache->lock);
	unhook(find(cache, &record->owner, record->name));
	at = place_for(cache, &record->owner, record->name);
	entry->next = *at;
	*at = entry;
	pthread_mutex_unlock(&cache->lock);
}

void secret_cache_remove(struct secret_cache *cache, const struct owner *owner, const char *name)
{
	pthread_mutex_lock(&cache->lock);
	unhook(find(cache, owner, name));
	pthread_mutex_unlock(&cache->lock);
}

const struct secret_cache_secret *secret_cache_find(
	struct secret_cache *cache, const struct owner *owner, const char *name)
{
	struct entry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = *find(cache, owner, name);
	if (entry)
		atomic_fetch_add(&entry->refs, 1);
	pthread_mutex_unlock(&cache->lock);
	return entry ? &entry->secret : NULL;
}
