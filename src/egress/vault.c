/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/vault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 1024 /* lists of secrets, each with those of one hash */

struct entry {
	struct vault_secret secret; /* first, so that it is found from the outside */
	atomic_int refs;
	struct entry *next;
};

struct vault {
	pthread_mutex_t lock;
	struct entry *places[PLACES];
};

struct vault *vault_new(void)
{
	struct vault *vault = mem_new(sizeof(*vault));

	pthread_mutex_init(&vault->lock, NULL);
	return vault;
}

static uint32_t hash_text(uint32_t hash, const char *text)
{
	do
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	while (*text++);
	return hash;
}

static struct entry **place_for(struct vault *vault, const struct owner *owner, const char *name)
{
	uint32_t hash = hash_text(2166136261u, owner->organization);

	hash = hash_text(hash_text(hash, owner->user), name);
	return &vault->places[hash % PLACES];
}

/* Where it hangs, or where it would. The lock is held. */
static struct entry **find(struct vault *vault, const struct owner *owner, const char *name)
{
	struct entry **at = place_for(vault, owner, name);

	for (; *at; at = &(*at)->next) {
		const struct secret_record *record = &(*at)->secret.record;

		if (strcmp(record->name, name) == 0 &&
			strcmp(record->owner.user, owner->user) == 0 &&
			strcmp(record->owner.organization, owner->organization) == 0)
			break;
	}
	return at;
}

void vault_secret_unref(const struct vault_secret *secret)
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
	vault_secret_unref(&entry->secret);
}

void vault_free(struct vault *vault)
{
	if (!vault)
		return;
	for (size_t i = 0; i < PLACES; i++) {
		while (vault->places[i])
			unhook(&vault->places[i]);
	}
	pthread_mutex_destroy(&vault->lock);
	free(vault);
}

void vault_put(struct vault *vault, const struct secret_record *record,
	const struct secret_server *server, const char *value)
{
	struct entry *entry = mem_new(sizeof(*entry)), **at;

	entry->secret.record = *record;
	entry->secret.server = *server;
	entry->secret.value = mem_strdup(value);
	entry->refs = 1;
	pthread_mutex_lock(&vault->lock);
	unhook(find(vault, &record->owner, record->name));
	at = place_for(vault, &record->owner, record->name);
	entry->next = *at;
	*at = entry;
	pthread_mutex_unlock(&vault->lock);
}

void vault_remove(struct vault *vault, const struct owner *owner, const char *name)
{
	pthread_mutex_lock(&vault->lock);
	unhook(find(vault, owner, name));
	pthread_mutex_unlock(&vault->lock);
}

const struct vault_secret *vault_find(
	struct vault *vault, const struct owner *owner, const char *name)
{
	struct entry *entry;

	pthread_mutex_lock(&vault->lock);
	entry = *find(vault, owner, name);
	if (entry)
		atomic_fetch_add(&entry->refs, 1);
	pthread_mutex_unlock(&vault->lock);
	return entry ? &entry->secret : NULL;
}
