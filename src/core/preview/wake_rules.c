/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/wake_rules.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/preview/preview.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILURES   16
#define FAILURE_MS 2000 /* how long a failed start is answered without another try */

struct failure {
	char id[ID_LEN + 1];
	uint64_t at_ms;
	char message[WAKE_RULES_MESSAGE_MAX];
};

struct wake_rules {
	pthread_mutex_t lock;
	struct failure failures[FAILURES];
	size_t next_failure;
};

struct wake_rules *wake_rules_new(void)
{
	struct wake_rules *rules = mem_new(sizeof(*rules));

	pthread_mutex_init(&rules->lock, NULL);
	return rules;
}

void wake_rules_free(struct wake_rules *rules)
{
	if (!rules)
		return;
	pthread_mutex_destroy(&rules->lock);
	free(rules);
}

static bool recent_failure(
	struct wake_rules *rules, const char *id, char ret_message[WAKE_RULES_MESSAGE_MAX])
{
	bool found = false;

	pthread_mutex_lock(&rules->lock);
	for (size_t i = 0; i < FAILURES && !found; i++) {
		const struct failure *failure = &rules->failures[i];

		found = strcmp(failure->id, id) == 0 &&
			clock_steady_ms() - failure->at_ms < FAILURE_MS;
		if (found)
			memcpy(ret_message, failure->message, sizeof(failure->message));
	}
	pthread_mutex_unlock(&rules->lock);
	return found;
}

static void note_failure(struct wake_rules *rules, const char *id, const char *message)
{
	struct failure *failure;

	pthread_mutex_lock(&rules->lock);
	failure = &rules->failures[rules->next_failure++ % FAILURES];
	failure->at_ms = clock_steady_ms();
	snprintf(failure->id, sizeof(failure->id), "%s", id);
	snprintf(failure->message, sizeof(failure->message), "%s", message);
	pthread_mutex_unlock(&rules->lock);
}

/* Browsers and crawlers ask for these by themselves. */
static bool is_idle_curiosity(const char *method, const char *target)
{
	return strcmp(method, "HEAD") == 0 || strcmp(target, "/favicon.ico") == 0 ||
	       strcmp(target, "/robots.txt") == 0;
}

enum wake_rules_answer wake_rules_judge(struct wake_rules *rules, const char *id,
	const char *method, const char *target, bool is_page,
	char ret_message[WAKE_RULES_MESSAGE_MAX])
{
	if (recent_failure(rules, id, ret_message))
		return WAKE_RULES_FAILED;
	if (is_idle_curiosity(method, target))
		return WAKE_RULES_NOT;
	return is_page ? WAKE_RULES_TELL : WAKE_RULES_WAIT;
}

void wake_rules_wake(struct wake_rules *rules, struct engine *engine, const char *id)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err err;

	if (sandbox_get(engine, NULL, id, &sandbox, &err) < 0 || preview_wake(sandbox, &err) < 0)
		note_failure(rules, id, err.message);
}
