/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/function_places.h"

#include "base/mem.h"
#include "model/access/owner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call under way. There are never more than processes may run, so a list does. */
struct function_place {
	struct function_places *places;
	struct function_place *next, **at;
	uint64_t owner;
	char function[MODEL_NAME_MAX];
};

struct function_places {
	pthread_mutex_t lock;
	struct function_place *first;
};

struct function_places *function_places_new(void)
{
	struct function_places *places = mem_new(sizeof(*places));

	pthread_mutex_init(&places->lock, NULL);
	return places;
}

void function_places_free(struct function_places *places)
{
	if (!places)
		return;
	pthread_mutex_destroy(&places->lock);
	free(places);
}

/* The lock is held. */
static unsigned count(const struct function_places *places, uint64_t owner, const char *function)
{
	unsigned number = 0;

	for (const struct function_place *at = places->first; at; at = at->next)
		number += at->owner == owner && strcmp(at->function, function) == 0;
	return number;
}

int function_place_take(struct function_places *places, const struct owner *owner,
	const char *function, unsigned max, struct function_place **ret_place, struct err *err)
{
	struct function_place *place = mem_new(sizeof(*place));
	bool is_full;

	*place = (struct function_place){.places = places, .owner = owner_key(owner)};
	snprintf(place->function, sizeof(place->function), "%s", function);
	pthread_mutex_lock(&places->lock);
	is_full = max > 0 && count(places, place->owner, function) >= max;
	if (!is_full) {
		place->next = places->first;
		place->at = &places->first;
		if (place->next)
			place->next->at = &place->next;
		places->first = place;
	}
	pthread_mutex_unlock(&places->lock);
	if (is_full) {
		free(place);
		return err_explain(err, ERR_RATE, "too_many_invocations",
			"try again later, or put the function with a higher concurrency",
			"as many calls of the function %s are under way as there may be: %u",
			function, max);
	}
	*ret_place = place;
	return 0;
}

void function_place_give_back(struct function_place *place)
{
	if (!place)
		return;
	pthread_mutex_lock(&place->places->lock);
	*place->at = place->next;
	if (place->next)
		place->next->at = place->at;
	pthread_mutex_unlock(&place->places->lock);
	free(place);
}
