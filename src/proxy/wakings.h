/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is being woken, and who waits for that: each key once, however many want it.
 *
 * A wake may take long, and holds a worker meanwhile. So it is a job of its own that has to pass two lanes
 * (http/lanes.h): of those who share their wakes only a few are under way at a time, and all of them together leave
 * half of the workers to those who look for a way. Who waits holds no thread. Any thread.
 */
#pragma once

#include "http/workers.h"
#include "proxy/passage.h"

struct wakings;

/* Both are borrowed. */
struct wakings *wakings_new(const struct proxy_config *config, struct workers *workers);
void wakings_free(struct wakings *wakings);

/*
 * Has what a way leads to woken, unless that is under way; blocks nobody. The passage waits, and must not be touched
 * any more: its job runs when it is awake, or cannot be woken. NULL: nobody waits.
 */
void wakings_join(struct wakings *wakings, const struct proxy_way *way, struct passage *passage);

/* From now on nothing more is woken, and who waits is left to its loop. */
void wakings_stop(struct wakings *wakings);
