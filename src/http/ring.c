/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define FIRST_SIZE 4096

void ring_fini(struct ring *ring)
{
	free(ring->data);
	*ring = (struct ring){0};
}

int ring_pieces(const struct ring *ring, struct iovec pieces[2])
{
	size_t until_end = ring->size - ring->head;
	size_t part = ring->len < until_end ? ring->len : until_end;

	pieces[0] = (struct iovec){ring->data + ring->head, part};
	pieces[1] = (struct iovec){ring->data, ring->len - part};
	return pieces[1].iov_len > 0 ? 2 : 1;
}

/* Makes it at least `need` large, with what is in it at its beginning. */
static int grow(struct ring *ring, size_t capacity, size_t need)
{
	size_t size = ring->size ? ring->size : FIRST_SIZE;
	char *data;

	if (need <= ring->size)
		return 0;
	while (size < need)
		size *= 2;
	if (need <= capacity && size > capacity)
		size = capacity;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	ring->len = ring_take(ring, data, ring->len);
	free(ring->data);
	ring->data = data;
	ring->size = size;
	ring->head = 0;
	return 0;
}

int ring_put(struct ring *ring, size_t capacity, const void *data, size_t len)
{
	size_t tail, part;
	int r = grow(ring, capacity, ring->len + len);

	if (r < 0 || len == 0)
		return r;
	tail = (ring->head + ring->len) % ring->size;
	part = len < ring->size - tail ? len : ring->size - tail;
	memcpy(ring->data + tail, data, part);
	memcpy(ring->data, (const char *)data + part, len - part);
	ring->len += len;
	return 0;
}

size_t ring_take(struct ring *ring, char *data, size_t size)
{
	size_t len = size < ring->len ? size : ring->len;
	struct iovec pieces[2];
	size_t part;

	if (len == 0)
		return 0;
	ring_pieces(ring, pieces);
	part = len < pieces[0].iov_len ? len : pieces[0].iov_len;
	memcpy(data, pieces[0].iov_base, part);
	memcpy(data + part, pieces[1].iov_base, len - part);
	ring_drop(ring, len);
	return len;
}

void ring_drop(struct ring *ring, size_t len)
{
	assert(len <= ring->len && ring->len <= ring->size);
	if (len == 0)
		return;
	ring->head = (ring->head + len) % ring->size;
	ring->len -= len;
}
