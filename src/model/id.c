/* SPDX-License-Identifier: Apache-2.0 */
#include "model/id.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TIME_LEN   10
#define RANDOM_LEN (ID_LEN - TIME_LEN)
#define STEP_LEN   8  /* digits, 40 bits, of what lies between two ids of a millisecond at most */
#define RECENT_MAX 64 /* threads look at the clock in one order and come here in another */

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* The last ids of the process, each in the place of its millisecond. */
static struct {
	pthread_mutex_t lock; /* a leaf */
	struct {
		int64_t wall_ms;
		unsigned char digits[RANDOM_LEN];
	} last[RECENT_MAX];
} recent = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first digit has a bit that begins as 0, so that no sum needs another digit. */
static void begin(unsigned char digits[RANDOM_LEN], const unsigned char random[RANDOM_LEN])
{
	for (int i = 0; i < RANDOM_LEN; i++)
		digits[i] = random[i] & (i == 0 ? 15 : 31);
}

/* Adds at least one, and what nobody can guess: the id of one does not tell that of the next. */
static void step(unsigned char digits[RANDOM_LEN], const unsigned char random[RANDOM_LEN])
{
	unsigned sum = 1 << 5;

	for (int i = RANDOM_LEN - 1; i >= 0; i--) {
		sum = digits[i] + (sum >> 5) + (i >= RANDOM_LEN - STEP_LEN ? random[i] & 31u : 0);
		digits[i] = sum & 31;
	}
}

void id_new(int64_t wall_ms, char id[ID_LEN + 1])
{
	size_t at = (size_t)wall_ms % RECENT_MAX;
	unsigned char random[RANDOM_LEN];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	pthread_mutex_lock(&recent.lock);
	if (recent.last[at].wall_ms == wall_ms) {
		step(recent.last[at].digits, random);
	} else {
		recent.last[at].wall_ms = wall_ms;
		begin(recent.last[at].digits, random);
	}
	for (int i = 0; i < RANDOM_LEN; i++)
		id[TIME_LEN + i] = alphabet[recent.last[at].digits[i]];
	pthread_mutex_unlock(&recent.lock);
	for (int i = TIME_LEN - 1; i >= 0; i--) {
		id[i] = alphabet[wall_ms & 31];
		wall_ms >>= 5;
	}
	id[ID_LEN] = '\0';
}

bool id_is_valid(const char *text)
{
	size_t len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz");

	return len == ID_LEN && text[len] == '\0';
}
