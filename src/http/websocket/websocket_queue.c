/* SPDX-License-Identifier: Apache-2.0 */
#include "http/websocket/websocket_queue.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#define REASON_MAX 123
#define HEADER_MAX 10

void websocket_queue_fini(struct websocket_queue *queue)
{
	ring_fini(&queue->waiting);
}

bool websocket_queue_admit(struct websocket_queue *queue, size_t len)
{
	size_t waiting = queue->waiting.len;

	if (waiting == 0 || (len <= queue->capacity && waiting <= queue->capacity - len))
		return true;
	if (len >= queue->refused)
		queue->refused = len > 0 ? len : 1;
	return false;
}

bool websocket_queue_has_room(const struct websocket_queue *queue)
{
	size_t half = queue->capacity / 2;
	size_t want = queue->refused > half ? queue->refused : half;

	if (queue->refused == 0)
		return false;
	return queue->waiting.len == 0 ||
	       (want <= queue->capacity && queue->waiting.len <= queue->capacity - want);
}

/* How many bytes the socket takes now, of those in the pieces. */
static ssize_t push(int sock, struct iovec *pieces, int count)
{
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
	ssize_t n = sendmsg(sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	return n;
}

static size_t make_header(uint8_t header[HEADER_MAX], uint8_t opcode, size_t len)
{
	unsigned bytes = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;

	header[0] = 0x80 | opcode; /* the only frame of its message */
	header[1] = bytes == 0 ? (uint8_t)len : bytes == 2 ? 126 : 127;
	for (unsigned i = 0; i < bytes; i++)
		header[2 + i] = (uint8_t)((uint64_t)len >> 8 * (bytes - 1 - i));
	return 2 + bytes;
}

static int put_rest(struct websocket_queue *queue, const struct iovec *piece, size_t *done)
{
	size_t skip = *done < piece->iov_len ? *done : piece->iov_len;

	*done -= skip;
	return ring_put(&queue->waiting, queue->capacity, (const char *)piece->iov_base + skip,
		piece->iov_len - skip);
}

int websocket_queue_put(
	struct websocket_queue *queue, int sock, uint8_t opcode, const void *data, size_t len)
{
	uint8_t header[HEADER_MAX];
	struct iovec pieces[] = {{header, make_header(header, opcode, len)}, {(void *)data, len}};
	size_t done = 0;
	int r = 0;

	if (queue->waiting.len == 0) {
		ssize_t n = push(sock, pieces, len > 0 ? 2 : 1);

		if (n < 0)
			return (int)n;
		done = (size_t)n;
	}
	for (size_t i = 0; i < array_len(pieces) && r == 0; i++)
		r = put_rest(queue, &pieces[i], &done);
	return r;
}

int websocket_queue_put_close(
	struct websocket_queue *queue, int sock, unsigned status, const char *reason)
{
	uint8_t payload[2 + REASON_MAX] = {(uint8_t)(status >> 8), (uint8_t)status};
	size_t len = reason ? strlen(reason) : 0;

	if (len > REASON_MAX)
		for (len = REASON_MAX; len > 0 && ((uint8_t)reason[len] & 0xc0) == 0x80; len--)
			continue;
	if (len > 0)
		memcpy(payload + 2, reason, len);
	return websocket_queue_put(queue, sock, WSLAY_CONNECTION_CLOSE, payload, 2 + len);
}

int websocket_queue_flush(struct websocket_queue *queue, int sock)
{
	size_t before = queue->waiting.len;
	struct iovec pieces[2];
	size_t want;
	ssize_t n;

	do {
		want = queue->waiting.len;
		n = want > 0 ? push(sock, pieces, ring_pieces(&queue->waiting, pieces)) : 0;
		if (n < 0)
			return (int)n;
		ring_drop(&queue->waiting, (size_t)n);
	} while (n > 0 && (size_t)n < want);
	return queue->waiting.len < before;
}
