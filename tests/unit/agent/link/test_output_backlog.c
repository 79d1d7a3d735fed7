/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/output_backlog.h"
#include "wire/agent.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Stream and value of the byte at an offset: runs of changing length, changing values. */
static enum output_backlog_stream stream_at(uint64_t offset)
{
	return offset / 7 % 3 == 0 || offset % 5 == 0 ? OUTPUT_BACKLOG_STDERR
						      : OUTPUT_BACKLOG_STDOUT;
}

static uint8_t value_at(uint64_t offset)
{
	return (uint8_t)(offset * 31 + offset / 251);
}

/* The clock when the byte at an offset is read; it wraps soon. */
static uint32_t time_at(uint64_t offset)
{
	return UINT32_MAX - 5000 + (uint32_t)(offset / 3);
}

static size_t add(struct output_backlog *backlog, size_t wanted)
{
	size_t done = 0;

	while (done < wanted) {
		uint8_t *at;
		size_t room = output_backlog_space(backlog, &at);

		if (room == 0)
			break;
		*at = value_at(backlog->end);
		output_backlog_add(backlog, stream_at(backlog->end), 1, time_at(backlog->end));
		done++;
	}
	return done;
}

/* Sends up to wanted bytes, checking each of them. */
static void send_checked(struct output_backlog *backlog, size_t wanted)
{
	struct output_backlog_piece piece;

	while (wanted > 0 && output_backlog_next(backlog, wanted, &piece)) {
		uint64_t offset = piece.offset;

		assert_int_equal(offset, backlog->sent);
		assert_int_equal(piece.parts[0].iov_len + piece.parts[1].iov_len, piece.len);
		for (size_t p = 0; p < 2; p++) {
			const uint8_t *data = piece.parts[p].iov_base;

			for (size_t i = 0; i < piece.parts[p].iov_len; i++, offset++) {
				assert_int_equal(data[i], value_at(offset));
				assert_int_equal(piece.stream, stream_at(offset));
				assert_in_range(time_at(offset) - piece.at_ms, 0, 9);
			}
		}
		output_backlog_send(backlog, piece.len);
		wanted -= piece.len;
	}
}

static void it_keeps_bytes_streams_and_times_through_any_order_of_calls(void **state)
{
	struct output_backlog backlog;
	uint32_t seed = 12345;

	(void)state;
	output_backlog_init(&backlog);
	for (int i = 0; i < 3000; i++) {
		size_t amount;

		seed = seed * 1664525 + 1013904223;
		amount = seed >> 8 & (seed & 1 ? 0xff : 0x1fff);
		switch (seed >> 28) {
		case 0:
			output_backlog_rewind(&backlog);
			break;
		case 1:
		case 2:
		case 3:
		case 4: {
			uint64_t to = backlog.start + amount;

			if (to > backlog.end)
				to = backlog.end;
			assert_int_equal(output_backlog_ack(&backlog, to), 0);
			assert_int_equal(backlog.start, to);
			break;
		}
		case 5:
		case 6:
		case 7:
		case 8:
			send_checked(&backlog, amount);
			break;
		default:
			add(&backlog, amount);
		}
		assert_true(backlog.start <= backlog.sent && backlog.sent <= backlog.end);
	}
	output_backlog_rewind(&backlog);
	send_checked(&backlog, AGENT_OUTPUT_WINDOW);
	assert_int_equal(backlog.sent, backlog.end);
	output_backlog_fini(&backlog);
}

static void it_takes_exactly_a_window_and_frees_it_when_acknowledged(void **state)
{
	struct output_backlog backlog;
	uint8_t *at;

	(void)state;
	output_backlog_init(&backlog);
	assert_int_equal(add(&backlog, 2 * AGENT_OUTPUT_WINDOW), AGENT_OUTPUT_WINDOW);
	assert_int_equal(output_backlog_space(&backlog, &at), 0);
	assert_int_equal(output_backlog_ack(&backlog, 10), 0);
	assert_int_equal(add(&backlog, 2 * AGENT_OUTPUT_WINDOW), 10);
	send_checked(&backlog, SIZE_MAX);
	assert_int_equal(backlog.sent, AGENT_OUTPUT_WINDOW + 10);
	assert_int_equal(output_backlog_ack(&backlog, backlog.end), 0);
	assert_null(backlog.ring);
	assert_null(backlog.runs.data);
	output_backlog_fini(&backlog);
}

static void acknowledging_bytes_that_do_not_exist_is_refused(void **state)
{
	struct output_backlog backlog;

	(void)state;
	output_backlog_init(&backlog);
	assert_int_equal(output_backlog_ack(&backlog, 0), 0);
	assert_int_equal(output_backlog_ack(&backlog, 1), -EPROTO);
	add(&backlog, 5);
	assert_int_equal(output_backlog_ack(&backlog, 6), -EPROTO);
	assert_int_equal(output_backlog_ack(&backlog, 5), 0);
	assert_int_equal(output_backlog_ack(&backlog, 3), 0);
	assert_int_equal(backlog.start, 5);
	output_backlog_fini(&backlog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_keeps_bytes_streams_and_times_through_any_order_of_calls),
		cmocka_unit_test(it_takes_exactly_a_window_and_frees_it_when_acknowledged),
		cmocka_unit_test(acknowledging_bytes_that_do_not_exist_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
