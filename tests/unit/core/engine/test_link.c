/* SPDX-License-Identifier: Apache-2.0 */
/* src/core/link.c against an agent on the other end of a socket pair: honest, hostile, and slow. */
#include "core_fixture.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/engine/agent_link.h"
#include "fd_count.h"
#include "wire/fdpass.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- send can be told to fail --- */

static atomic_int fail_sends; /* that many, with ENOBUFS */

ssize_t __real_send(int sock, const void *data, size_t len, int flags);
ssize_t __wrap_send(int sock, const void *data, size_t len, int flags);

ssize_t __wrap_send(int sock, const void *data, size_t len, int flags)
{
	int left = atomic_load(&fail_sends);

	while (left > 0) {
		if (atomic_compare_exchange_weak(&fail_sends, &left, left - 1)) {
			errno = ENOBUFS;
			return -1;
		}
	}
	return __real_send(sock, data, len, flags);
}

/* --- a link --- */

struct wire {
	struct event_loop *loop;
	struct agent_link *link;
	int peer;
	int fds_before;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned frames, losses;
	uint64_t bytes;
	uint32_t last_id;
	uint16_t last_kind;
	uint8_t last_byte;
	bool disordered;       /* ids that do not count up by one */
	uint16_t refused_kind; /* ends the link */
};

static int on_frame(void *arg, const struct frame *frame)
{
	struct wire *wire = arg;
	int r;

	pthread_mutex_lock(&wire->lock);
	if (wire->losses > 0 || frame->id != wire->last_id + 1)
		wire->disordered = true;
	wire->frames++;
	wire->bytes += frame->len;
	wire->last_id = frame->id;
	wire->last_kind = frame->kind;
	wire->last_byte = frame->len > 0 ? frame->payload[frame->len - 1] : 0;
	r = wire->refused_kind && frame->kind == wire->refused_kind ? -EPROTO : 0;
	pthread_cond_broadcast(&wire->changed);
	pthread_mutex_unlock(&wire->lock);
	return r;
}

static void on_lost(void *arg)
{
	struct wire *wire = arg;

	pthread_mutex_lock(&wire->lock);
	wire->losses++;
	pthread_cond_broadcast(&wire->changed);
	pthread_mutex_unlock(&wire->lock);
}

static const struct agent_link_events events = {.frame = on_frame, .lost = on_lost};

static int setup(void **state)
{
	struct wire *wire = mem_new(sizeof(*wire));
	struct err err;
	int pair[2];

	log_open("test", LOG_ERROR + 1);
	atomic_store(&fail_sends, 0);
	wire->fds_before = count_fds();
	pthread_mutex_init(&wire->lock, NULL);
	pthread_cond_init(&wire->changed, NULL);
	if (event_loop_open("test", NULL, &wire->loop, &err) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	wire->peer = pair[1];
	if (agent_link_open(wire->loop, &(struct driver_link){pair[0], 7}, &events, wire,
		    &wire->link, &err) < 0)
		return -1;
	*state = wire;
	return 0;
}

static void wait_for(struct wire *wire, unsigned frames, unsigned losses)
{
	struct timespec until;
	int waited = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	pthread_mutex_lock(&wire->lock);
	while ((wire->frames < frames || wire->losses < losses) && waited == 0)
		waited = pthread_cond_timedwait(&wire->changed, &wire->lock, &until);
	assert_true(wire->frames >= frames && wire->losses >= losses);
	pthread_mutex_unlock(&wire->lock);
}

static int teardown(void **state)
{
	struct wire *wire = *state;

	agent_link_close(wire->link);
	wait_for(wire, 0, 1);
	agent_link_unref(wire->link);
	event_loop_close(wire->loop);
	assert_int_equal(wire->losses, 1);
	fd_close(wire->peer);
	assert_int_equal(count_fds(), wire->fds_before);
	pthread_mutex_destroy(&wire->lock);
	pthread_cond_destroy(&wire->changed);
	free(wire);
	return 0;
}

static void write_raw(struct wire *wire, const void *data, size_t len)
{
	assert_int_equal(fd_write_full(wire->peer, data, len), 0);
}

/* --- in --- */

static void frames_come_whole_however_they_are_cut(void **state)
{
	struct wire *wire = *state;
	struct buf out = BUF_INIT(1 << 20);

	for (uint32_t id = 1; id <= 3; id++)
		frame_put(&out, 7, id, "hello", 5);
	write_raw(wire, out.data, out.len); /* three at once */
	wait_for(wire, 3, 0);
	for (size_t i = 0; i < out.len; i++) { /* byte by byte */
		if (i % 17 == 0)
			out.data[i / 17 * 17 + 8] = (uint8_t)(4 + i / 17); /* the id */
		write_raw(wire, out.data + i, 1);
	}
	wait_for(wire, 6, 0);
	assert_false(wire->disordered);
	assert_int_equal(wire->bytes, 30);
	assert_int_equal(wire->last_byte, 'o');
	buf_fini(&out);
}

static void the_largest_frame_passes(void **state)
{
	struct wire *wire = *state;
	struct buf out = BUF_INIT(1 << 20);
	uint8_t *payload = mem_new(AGENT_UP_MAX);

	payload[AGENT_UP_MAX - 1] = 0x5a;
	for (uint32_t id = 1; id <= 4; id++)
		frame_put(&out, 7, id, payload, AGENT_UP_MAX);
	write_raw(wire, out.data, out.len);
	wait_for(wire, 4, 0);
	assert_int_equal(wire->bytes, 4ull * AGENT_UP_MAX);
	assert_int_equal(wire->last_byte, 0x5a);
	assert_false(wire->disordered);
	free(payload);
	buf_fini(&out);
}

static void assert_header_ends_the_link(struct wire *wire, uint32_t len, uint16_t zero)
{
	struct buf out = BUF_INIT(64);

	pack_u32(&out, len);
	pack_u16(&out, 7);
	pack_u16(&out, zero);
	pack_u32(&out, 1);
	write_raw(wire, out.data, out.len);
	buf_fini(&out);
	wait_for(wire, 0, 1);
	assert_int_equal(wire->frames, 0);
}

static void a_frame_that_is_too_large_ends_the_link_at_its_header(void **state)
{
	assert_header_ends_the_link(*state, AGENT_UP_MAX + 1, 0);
}

static void a_frame_of_four_gibibytes_ends_the_link(void **state)
{
	assert_header_ends_the_link(*state, UINT32_MAX, 0);
}

static void a_reserved_field_that_is_used_ends_the_link(void **state)
{
	assert_header_ends_the_link(*state, 0, 1);
}

static void noise_ends_the_link(void **state)
{
	struct wire *wire = *state;
	uint8_t noise[4096];

	memset(noise, 0xa5, sizeof(noise));
	write_raw(wire, noise, sizeof(noise));
	wait_for(wire, 0, 1);
	assert_int_equal(wire->frames, 0);
}

static void a_refused_frame_ends_the_link_and_nothing_follows(void **state)
{
	struct wire *wire = *state;
	struct buf out = BUF_INIT(1024);

	wire->refused_kind = 9;
	frame_put(&out, 8, 1, "", 0);
	frame_put(&out, 9, 2, "", 0);
	frame_put(&out, 8, 3, "", 0);
	write_raw(wire, out.data, out.len);
	buf_fini(&out);
	wait_for(wire, 0, 1);
	assert_int_equal(wire->frames, 2);
}

static void the_end_of_the_agent_ends_the_link_once(void **state)
{
	struct wire *wire = *state;

	fd_close(take_fd(&wire->peer));
	wait_for(wire, 0, 1);
	assert_int_equal(agent_link_send(wire->link, 1, 1, "", 0), -EPIPE);
	agent_link_close(wire->link);
}

static void half_a_frame_and_then_the_end_is_an_end(void **state)
{
	struct wire *wire = *state;

	write_raw(wire, "\x05\0\0\0\x07\0", 6);
	fd_close(take_fd(&wire->peer));
	wait_for(wire, 0, 1);
	assert_int_equal(wire->frames, 0);
}

static void descriptors_that_an_agent_sends_along_do_not_stay(void **state)
{
	struct wire *wire = *state;
	struct buf out = BUF_INIT(64);
	int before = count_fds();
	int fds[FDPASS_MAX] = {0};

	frame_put(&out, 7, 1, "", 0);
	assert_int_equal(fdpass_send(wire->peer, out.data, out.len, fds, FDPASS_MAX, 0), out.len);
	buf_fini(&out);
	wait_for(wire, 1, 0);
	assert_int_equal(count_fds(), before);
}

/* --- out --- */

static void a_payload_that_is_too_large_is_refused(void **state)
{
	struct wire *wire = *state;
	uint8_t *payload = mem_new(AGENT_DOWN_MAX + 1);

	assert_int_equal(agent_link_send(wire->link, 1, 1, payload, AGENT_DOWN_MAX + 1), -EMSGSIZE);
	free(payload);
	assert_int_equal(wire->losses, 0);
}

/* Frames of 64 KiB until the link says that it is full; how many. */
static uint32_t fill(struct wire *wire)
{
	uint8_t *payload = mem_new(65536);
	uint32_t sent = 0;
	int r;

	do {
		memset(payload, (int)sent, 65536);
		r = agent_link_send(wire->link, 5, sent, payload, 65536);
		sent += r == 0;
	} while (r == 0 && sent < 1000);
	assert_int_equal(r, -EAGAIN);
	free(payload);
	return sent;
}

static void an_agent_that_does_not_read_gets_so_much_and_no_more(void **state)
{
	struct wire *wire = *state;
	uint32_t sent = fill(wire);
	struct wire_frame frame;

	/* 4 MiB in memory and what the socket holds. */
	assert_in_range(sent, 60, 80);
	assert_int_equal(agent_link_send(wire->link, 1, 1, "", 0), 0); /* a little one still fits */
	for (uint32_t id = 0; id < sent; id++) {
		wire_expect(wire->peer, 5, &frame);
		assert_int_equal(frame.id, id);
		assert_int_equal(frame.len, 65536);
		assert_int_equal(frame.payload[100], id & 0xff);
	}
	wire_expect(wire->peer, 1, &frame);
	/* And it is as good as new. */
	assert_int_equal(agent_link_send(wire->link, 6, 77, "", 0), 0);
	wire_expect(wire->peer, 6, &frame);
	assert_int_equal(frame.id, 77);
}

static void what_waits_is_dropped_with_the_link(void **state)
{
	struct wire *wire = *state;

	fill(wire);
	agent_link_close(wire->link);
	wait_for(wire, 0, 1);
	agent_link_unref(take_ptr(&wire->link));
	event_loop_close(wire->loop);
	/* For the teardown: another link in its place. */
	wire->losses = 0;
	close(wire->peer);
	{
		struct err err;
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		wire->peer = pair[1];
		assert_int_equal(event_loop_open("test", NULL, &wire->loop, &err), 0);
		assert_int_equal(agent_link_open(wire->loop, &(struct driver_link){pair[0], 7},
					 &events, wire, &wire->link, &err),
			0);
	}
}

/* The kernel may be short of memory for a moment. That must not last. */
static void a_send_that_the_kernel_refuses_leaves_the_link_usable(void **state)
{
	struct wire *wire = *state;
	struct wire_frame frame;

	atomic_store(&fail_sends, 1);
	assert_int_equal(agent_link_send(wire->link, 5, 1, "one", 3), -ENOBUFS);
	assert_int_equal(agent_link_send(wire->link, 5, 2, "two", 3), 0);
	wire_expect(wire->peer, 5, &frame);
	assert_int_equal(frame.id, 2); /* what was refused is not sent later */
	assert_int_equal(wire->losses, 0);
}

#define SENDERS	      4
#define SENDER_FRAMES 200

struct sender {
	struct agent_link *link;
	uint32_t id;
	int r;
};

static void *send_a_lot(void *arg)
{
	struct sender *sender = arg;
	uint8_t payload[3000];

	memset(payload, (int)sender->id, sizeof(payload));
	for (int i = 0; i < SENDER_FRAMES && sender->r == 0; i++)
		sender->r = agent_link_send(sender->link, 5, sender->id, payload, sizeof(payload));
	return NULL;
}

static void frames_of_several_threads_do_not_mix(void **state)
{
	struct wire *wire = *state;
	struct sender senders[SENDERS];
	pthread_t threads[SENDERS];

	for (uint32_t i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){.link = wire->link, .id = i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, send_a_lot, &senders[i]), 0);
	}
	for (int i = 0; i < SENDERS * SENDER_FRAMES; i++) {
		struct wire_frame frame;

		wire_expect(wire->peer, 5, &frame);
		assert_int_equal(frame.len, 3000);
		for (size_t at = 0; at < sizeof(frame.payload); at++)
			assert_int_equal(frame.payload[at], frame.id);
	}
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(senders[i].r, 0);
	}
}

static void *close_it(void *arg)
{
	agent_link_close(arg);
	return NULL;
}

static void a_link_that_all_close_at_once_is_lost_once(void **state)
{
	struct wire *wire = *state;
	pthread_t threads[4];

	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, close_it, wire->link), 0);
	fd_close(take_fd(&wire->peer));
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	wait_for(wire, 0, 1);
	assert_int_equal(agent_link_send(wire->link, 1, 1, "", 0), -EPIPE);
}

#define ON_A_WIRE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ON_A_WIRE(frames_come_whole_however_they_are_cut),
		ON_A_WIRE(the_largest_frame_passes),
		ON_A_WIRE(a_frame_that_is_too_large_ends_the_link_at_its_header),
		ON_A_WIRE(a_frame_of_four_gibibytes_ends_the_link),
		ON_A_WIRE(a_reserved_field_that_is_used_ends_the_link),
		ON_A_WIRE(noise_ends_the_link),
		ON_A_WIRE(a_refused_frame_ends_the_link_and_nothing_follows),
		ON_A_WIRE(the_end_of_the_agent_ends_the_link_once),
		ON_A_WIRE(half_a_frame_and_then_the_end_is_an_end),
		ON_A_WIRE(descriptors_that_an_agent_sends_along_do_not_stay),
		ON_A_WIRE(a_payload_that_is_too_large_is_refused),
		ON_A_WIRE(an_agent_that_does_not_read_gets_so_much_and_no_more),
		ON_A_WIRE(what_waits_is_dropped_with_the_link),
		ON_A_WIRE(a_send_that_the_kernel_refuses_leaves_the_link_usable),
		ON_A_WIRE(frames_of_several_threads_do_not_mix),
		ON_A_WIRE(a_link_that_all_close_at_once_is_lost_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
