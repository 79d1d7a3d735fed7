/* SPDX-License-Identifier: Apache-2.0 */
/* The member of the crew that removes what is in the trash (storage.h). */
#pragma once

#include "keeper/crew.h"
#include "keeper/storage.h"

/* Begins with what is there. A poke makes it look again. */
void janitor_start(struct crew_member *janitor, const struct storage *storage, struct crew *crew);
