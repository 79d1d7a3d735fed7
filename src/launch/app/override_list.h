/* SPDX-License-Identifier: Apache-2.0 */
/* What sandlot.json and a request say otherwise than was found, each choice as an entry of a list. */
#pragma once

#include "launch/app/app_part.h"

#include <jansson.h>

/* What was found before anybody said otherwise. The parts are borrowed. */
struct override_found {
	const struct app_part *parts; /* ROLE_COUNT of them */
	const bool *has_part;	      /* likewise */
	json_t *services;	      /* names; borrowed */
};

/* Adds {"what", "said", "found", "source"} for each choice of an object as in detection.h; found is null if nothing was. */
void override_list_add(
	json_t *list, const json_t *said, const char *source, const struct override_found *found);
