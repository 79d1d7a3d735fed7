/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/ticket_table.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

struct ticket {
	unsigned char hash[SECRET_HASH_LEN];
	uint64_t until_ms; /* 0: free */
	struct principal principal;
	char path[TICKET_PATH_MAX];
};

struct ticket_table {
	pthread_mutex_t lock;
	struct ticket tickets[TICKETS_MAX];
};

struct ticket_table *ticket_table_new(void)
{
	struct ticket_table *table = mem_new(sizeof(*table));

	pthread_mutex_init(&table->lock, NULL);
	return table;
}

void ticket_table_free(struct ticket_table *table)
{
	if (!table)
		return;
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static bool is_same_owner(const struct principal *a, const struct principal *b)
{
	return strcmp(a->organization, b->organization) == 0 && strcmp(a->user, b->user) == 0;
}

/* A free place, if the owner may have another. */
static struct ticket *find_place(
	struct ticket_table *table, const struct principal *principal, uint64_t now_ms)
{
	struct ticket *place = NULL;
	unsigned own = 0;

	for (size_t i = 0; i < TICKETS_MAX; i++) {
		struct ticket *ticket = &table->tickets[i];

		if (ticket->until_ms <= now_ms)
			place = ticket;
		else
			own += is_same_owner(&ticket->principal, principal);
	}
	return own < TICKETS_OF_OWNER ? place : NULL;
}

int ticket_table_issue(struct ticket_table *table, const struct principal *principal,
	const char *path, uint64_t now_ms, uint64_t life_ms, char ticket[SECRET_TEXT_MAX],
	struct err *err)
{
	struct ticket *place;
	char text[SECRET_TEXT_MAX];

	assert(strlen(path) < TICKET_PATH_MAX);
	secret_make("tkt_", text);
	pthread_mutex_lock(&table->lock);
	place = find_place(table, principal, now_ms);
	if (place) {
		*place = (struct ticket){.until_ms = now_ms + life_ms, .principal = *principal};
		secret_hash(text, place->hash);
		memcpy(place->path, path, strlen(path) + 1);
	}
	pthread_mutex_unlock(&table->lock);
	if (!place)
		return err_set(err, ERR_RATE, "too many tickets wait to be used");
	memcpy(ticket, text, sizeof(text));
	return 0;
}

int ticket_table_redeem(struct ticket_table *table, const char *ticket, const char *path,
	uint64_t now_ms, struct principal *ret_principal, struct err *err)
{
	unsigned char hash[SECRET_HASH_LEN];
	struct ticket found = {0};

	secret_hash(ticket, hash);
	pthread_mutex_lock(&table->lock);
	for (size_t i = 0; i < TICKETS_MAX; i++) {
		struct ticket *one = &table->tickets[i];

		if (one->until_ms > now_ms && memcmp(one->hash, hash, sizeof(hash)) == 0) {
			found = *one;
			one->until_ms = 0;
		}
	}
	pthread_mutex_unlock(&table->lock);
	if (!found.until_ms || strcmp(found.path, path) != 0)
		return err_set(err, ERR_UNAUTHENTICATED, "the ticket is not valid");
	*ret_principal = found.principal;
	return 0;
}
