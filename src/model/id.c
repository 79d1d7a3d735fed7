/* SPDX-License-Identifier: Apache-2.0 */
#include "model/id.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_new(int64_t wall_ms, char id[ID_LEN + 1])
{
	unsigned char random[16];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	for (int i = 9; i >= 0; i--) {
		id[i] = alphabet[wall_ms & 31];
		wall_ms >>= 5;
	}
	for (int i = 0; i < 16; i++)
		id[10 + i] = alphabet[random[i] & 31];
	id[ID_LEN] = '\0';
}

bool id_is_valid(const char *text)
{
	size_t len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz");

	return len == ID_LEN && text[len] == '\0';
}
