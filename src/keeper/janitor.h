/* SPDX-License-Identifier: Apache-2.0 */
/* The child of the keeper that removes what is in the trash (storage.h). */
#pragma once

#include "keeper/office.h"

void janitor_start(struct keeper *keeper);

/* Makes it look into the trash. */
void janitor_poke(const struct keeper *keeper);
