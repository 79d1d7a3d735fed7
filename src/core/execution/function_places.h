/* SPDX-License-Identifier: Apache-2.0 */
/* How many calls of each function are under way: some functions say how many there may be. */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_record.h"

struct function_place;
struct function_places;

struct function_places *function_places_new(void);
void function_places_free(struct function_places *places);

/* One more call, at most `max` of which may be under way (0: any number). ERR_RATE if there are as many. */
int function_place_take(struct function_places *places, const struct owner *owner,
	const char *function, unsigned max, struct function_place **ret_place, struct err *err)
	must_check;

/* NULL is fine. */
void function_place_give_back(struct function_place *place);
