/* SPDX-License-Identifier: Apache-2.0 */
#include "base/similar.h"

#include <string.h>

#define WORD_MAX 40

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The optimal string alignment distance: each cell holds that of two beginnings of the words. */
unsigned similar_distance(const char *a, const char *b)
{
	unsigned cells[WORD_MAX + 1][WORD_MAX + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return SIMILAR_MAX + 1;
	for (size_t i = 0; i <= a_len; i++) {
		for (size_t k = 0; k <= b_len; k++) {
			unsigned cost;

			if (i == 0 || k == 0) {
				cells[i][k] = (unsigned)(i + k);
				continue;
			}
			cost = cells[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
			cost = least(cost, cells[i - 1][k] + 1);
			cost = least(cost, cells[i][k - 1] + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				cost = least(cost, cells[i - 2][k - 2] + 1);
			cells[i][k] = cost;
		}
	}
	return cells[a_len][b_len];
}
