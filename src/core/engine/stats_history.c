/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/stats_history.h"

#include "base/mem.h"

#include <string.h>

#define FIRST_ROOM 16

/* Points in order of time, of which the oldest give way. Few sandboxes live so long that all of it is used. */
struct point_ring {
	struct stats_point *points; /* NULL until there is one */
	size_t first, count, room, max;
};

/* A step that is being gathered. */
struct step {
	uint32_t length_s, number; /* at_s / length_s */
	unsigned count;
	struct stats_point sum;
};

struct stats_history {
	struct point_ring rings[2];
	struct step steps[2];
};

/* While it grows the oldest is at its beginning. */
static void grow(struct point_ring *ring)
{
	size_t wanted = ring->room ? 2 * ring->room : FIRST_ROOM;
	size_t room = wanted < ring->max ? wanted : ring->max;
	struct stats_point *points = mem_new(room * sizeof(*points));

	if (ring->count > 0)
		memcpy(points, ring->points, ring->count * sizeof(*points));
	free(ring->points);
	ring->points = points;
	ring->room = room;
}

static void push(struct point_ring *ring, const struct stats_point *point)
{
	if (ring->count == ring->room && ring->room < ring->max)
		grow(ring);
	if (ring->count == ring->max) {
		ring->first = (ring->first + 1) % ring->max;
		ring->count--;
	}
	ring->points[(ring->first + ring->count++) % ring->max] = *point;
}

/* The mean of a step that is over. */
static void close_step(struct point_ring *ring, struct step *step)
{
	float n = (float)step->count;
	struct stats_point mean = {.at_s = (step->number + 1) * step->length_s,
		.cpu = step->sum.cpu / n,
		.memory = step->sum.memory / n,
		.disk = step->sum.disk / n,
		.rx = step->sum.rx / n,
		.tx = step->sum.tx / n};

	push(ring, &mean);
	step->count = 0;
	step->sum = (struct stats_point){0};
}

struct stats_history *stats_history_new(void)
{
	struct stats_history *history = mem_new(sizeof(*history));

	history->rings[0].max = STATS_FINE;
	history->rings[1].max = STATS_COARSE;
	history->steps[0].length_s = STATS_FINE_S;
	history->steps[1].length_s = STATS_COARSE_S;
	return history;
}

void stats_history_free(struct stats_history *history)
{
	if (!history)
		return;
	free(history->rings[0].points);
	free(history->rings[1].points);
	free(history);
}

void stats_history_add(struct stats_history *history, const struct stats_point *point)
{
	for (size_t i = 0; i < array_len(history->steps); i++) {
		struct step *step = &history->steps[i];
		uint32_t number = point->at_s / step->length_s;

		if (step->count > 0 && step->number != number)
			close_step(&history->rings[i], step);
		step->number = number;
		step->count++;
		step->sum.cpu += point->cpu;
		step->sum.memory += point->memory;
		step->sum.disk += point->disk;
		step->sum.rx += point->rx;
		step->sum.tx += point->tx;
	}
}

size_t stats_history_read(const struct stats_history *history, bool is_coarse, uint32_t since_s,
	struct stats_point *points, size_t max)
{
	const struct point_ring *ring = &history->rings[is_coarse];
	size_t count = 0;

	for (size_t i = 0; i < ring->count && count < max; i++) {
		const struct stats_point *point = &ring->points[(ring->first + i) % ring->max];

		if (point->at_s >= since_s)
			points[count++] = *point;
	}
	return count;
}
