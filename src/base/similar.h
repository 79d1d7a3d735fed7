/* SPDX-License-Identifier: Apache-2.0 */
/* How far a mistyped word is from the one that was meant. */
#pragma once

#define SIMILAR_MAX 2 /* words further apart than this are not mistaken for each other */

/*
 * How many letters must be added, left out, replaced, or exchanged with their neighbour to make one
 * word of the other. More than SIMILAR_MAX if a word is longer than any command or setting.
 */
unsigned similar_distance(const char *a, const char *b);
