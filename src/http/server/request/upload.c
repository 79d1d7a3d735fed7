/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/upload.h"

#include "base/share_pool.h"
#include "http/server/request/request_private.h"
#include "http/server/request/request_worker.h"
#include "http/server/server_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define RING_SIZE (256u * 1024)

struct upload_ring {
	pthread_cond_t filled;
	size_t head;
	size_t len;
	bool cut; /* the client is gone */
	char data[RING_SIZE];
};

/* Pumping to a descriptor. */

static void set_chunk(struct upload *upload, size_t len)
{
	upload->chunk = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
	upload->written = 0;
	for (unsigned i = 0; i < sizeof(upload->prefix); i++)
		upload->prefix[i] = (uint8_t)(upload->chunk >> 8 * i);
}

/*
 * Writes as much of the chunk in hand as fits, whose unwritten bytes are at data. The number of
 * bytes of data that went out; *ret_done when all did.
 */
static ssize_t write_chunk(struct upload *upload, const char *data, bool *ret_done)
{
	const uint32_t prefix_len = sizeof(upload->prefix);
	uint32_t before = upload->written < prefix_len ? 0 : upload->written - prefix_len;
	struct iovec parts[2] = {{0}, {(char *)data, upload->chunk - before}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	uint32_t after;
	ssize_t n;

	if (upload->written < prefix_len)
		parts[0] = (struct iovec){
			upload->prefix + upload->written, prefix_len - upload->written};
	do
		n = sendmsg(upload->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	upload->written += (uint32_t)n;
	after = upload->written < prefix_len ? 0 : upload->written - prefix_len;
	*ret_done = upload->written == prefix_len + upload->chunk;
	return after - before;
}

/* Suspends for good and runs finish(). */
static bool end_pump(struct request *req, bool complete)
{
	bool done;

	pthread_mutex_lock(&req->lock);
	watch_close(take_ptr(&req->pump_watch));
	done = request_suspend_locked(req);
	if (done)
		req->phase = PHASE_WORK;
	pthread_mutex_unlock(&req->lock);
	if (done)
		request_worker_finish(req, complete);
	return done;
}

static bool wait_writable(struct request *req)
{
	if (!request_suspend(req))
		return false;
	request_wake_when(req, req->upload.fd, EPOLLOUT);
	return true;
}

bool upload_pump(struct request *req, const char *data, size_t *size)
{
	struct upload *upload = &req->upload;
	bool is_end = *size == 0;

	if (is_end) {
		pthread_mutex_lock(&req->lock);
		req->body_done = true;
		pthread_mutex_unlock(&req->lock);
	}
	/* After a wait the library may offer more than the chunk in hand: then another follows. */
	do {
		bool done = false;
		ssize_t n;

		if (upload->written == 0)
			set_chunk(upload, *size);
		n = write_chunk(upload, data, &done);
		if (n < 0 && n != -EAGAIN)
			return end_pump(req, false);
		if (n > 0) {
			data += n;
			*size -= (size_t)n;
			req->received += (uint64_t)n;
		}
		if (!done)
			return wait_writable(req);
		upload->written = 0;
	} while (*size > 0);
	return is_end ? end_pump(req, true) : true;
}

/* Filling the ring that a handler reads. */

static void ring_put(struct upload_ring *ring, const char *data, size_t len)
{
	size_t tail = (ring->head + ring->len) % RING_SIZE;
	size_t part = len < RING_SIZE - tail ? len : RING_SIZE - tail;

	memcpy(ring->data + tail, data, part);
	memcpy(ring->data, data + part, len - part);
	ring->len += len;
}

static size_t ring_take(struct upload_ring *ring, char *data, size_t size)
{
	size_t len = size < ring->len ? size : ring->len;
	size_t part = len < RING_SIZE - ring->head ? len : RING_SIZE - ring->head;

	memcpy(data, ring->data + ring->head, part);
	memcpy(data + part, ring->data, len - part);
	ring->head = (ring->head + len) % RING_SIZE;
	ring->len -= len;
	return len;
}

bool upload_fill(struct request *req, const char *data, size_t *size)
{
	struct upload_ring *ring = req->upload.ring;
	bool going = true;
	size_t len;

	pthread_mutex_lock(&req->lock);
	if (req->phase != PHASE_FILL) {
		/* The handler was quicker; the next call sees what it left. */
	} else if (*size == 0) {
		req->body_done = true;
		going = request_suspend_locked(req);
		pthread_cond_signal(&ring->filled);
	} else {
		len = *size < RING_SIZE - ring->len ? *size : RING_SIZE - ring->len;
		ring_put(ring, data, len);
		req->received += len;
		*size -= len;
		if (*size > 0)
			going = request_suspend_locked(req);
		pthread_cond_signal(&ring->filled);
	}
	pthread_mutex_unlock(&req->lock);
	return going;
}

/* The first read: asks the connection for the body. */
static int begin_reading(struct request *req)
{
	struct server *server = req->server;
	struct upload_ring *ring;

	if (share_pool_take(server->readers, server_owner_key(server, &req->principal),
		    req->principal.is_operator, &req->upload.reader) < 0) {
		req->upload.was_refused = true;
		return -EAGAIN;
	}
	ring = mem_new(sizeof(*ring));
	pthread_cond_init(&ring->filled, NULL);
	pthread_mutex_lock(&req->lock);
	req->upload.ring = ring;
	if (req->connection) {
		req->phase = PHASE_FILL;
		request_wake_locked(req);
	} else {
		ring->cut = true;
	}
	pthread_mutex_unlock(&req->lock);
	return 0;
}

ssize_t upload_read(struct request *req, void *data, size_t size)
{
	struct upload_ring *ring;
	ssize_t n = -EPIPE;

	if (req->upload.was_refused)
		return -EAGAIN;
	if (!req->announced.present || size == 0)
		return 0;
	if (!req->upload.ring && begin_reading(req) < 0)
		return -EAGAIN;
	ring = req->upload.ring;
	pthread_mutex_lock(&req->lock);
	while (ring->len == 0 && !req->body_done && !ring->cut)
		pthread_cond_wait(&ring->filled, &req->lock);
	if (ring->len > 0 || req->body_done)
		n = (ssize_t)ring_take(ring, data, size);
	else
		req->upload.was_cut = true;
	/* Half empty before the connection goes on: few wake-ups, and never a dry ring. */
	if (!req->body_done && ring->len <= RING_SIZE / 2)
		request_wake_locked(req);
	pthread_mutex_unlock(&req->lock);
	return n;
}

void upload_cut(struct request *req)
{
	pthread_mutex_lock(&req->lock);
	if (req->upload.ring) {
		req->upload.ring->cut = true;
		pthread_cond_signal(&req->upload.ring->filled);
	}
	pthread_mutex_unlock(&req->lock);
}

void upload_fini(struct request *req)
{
	if (!req->upload.ring)
		return;
	pthread_cond_destroy(&req->upload.ring->filled);
	free(req->upload.ring);
}
