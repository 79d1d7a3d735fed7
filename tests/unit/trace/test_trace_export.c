/* SPDX-License-Identifier: Apache-2.0 */
/* Spans on their way to a collector that does not answer, and what a traceparent means for a span. */
#include "trace/trace_export.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* A collector that takes connections, and nothing else. */
static int listen_silently(char endpoint[64])
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	snprintf(endpoint, 64, "http://127.0.0.1:%u/", ntohs(address.sin_port));
	return fd;
}

static void a_collector_that_hangs_costs_its_spans_and_nothing_else(void **state)
{
	struct trace_export_stats figures;
	struct trace_export *export;
	struct trace_span span;
	char endpoint[64];
	struct err err;
	int fd = listen_silently(endpoint);

	(void)state;
	assert_int_equal(trace_export_open(endpoint, &export, &err), 0);
	trace_span_init(&span, "");
	for (unsigned i = 0; i < 5 * TRACE_EXPORT_QUEUE; i++)
		trace_export_add(export, &span);
	trace_export_read(export, &figures);
	assert_int_equal(figures.sent, 0);
	assert_true(figures.dropped >= 3 * TRACE_EXPORT_QUEUE);
	assert_true(figures.dropped <= 4 * TRACE_EXPORT_QUEUE);
	trace_export_close(export);
	close(fd);
}

static void a_span_is_below_its_traceparent_or_begins_a_trace(void **state)
{
	struct trace_span span, other;
	char text[TRACE_PARENT_LEN + 1];

	(void)state;
	trace_span_init(&span, PARENT);
	assert_string_equal(span.trace, "0af7651916cd43dd8448eb211c80319c");
	assert_string_equal(span.parent, "b7ad6b7169203331");
	assert_int_equal(strlen(span.id), TRACE_SPAN_LEN);
	trace_span_format(&span, text);
	trace_span_init(&other, text);
	assert_string_equal(other.trace, span.trace);
	assert_string_equal(other.parent, span.id);
	assert_string_not_equal(other.id, span.id);
	trace_span_init(&other, "");
	assert_string_equal(other.parent, "");
	assert_string_not_equal(other.trace, span.trace);
	assert_true(trace_is_sampled("") && trace_is_sampled(PARENT));
	text[TRACE_PARENT_LEN - 1] = '0';
	assert_false(trace_is_sampled(text));
}

static void only_so_many_attributes_are_kept_and_empty_ones_are_none(void **state)
{
	struct trace_span span;

	(void)state;
	trace_span_init(&span, "");
	trace_span_set(&span, "empty", "");
	assert_int_equal(span.attribute_count, 0);
	for (int i = 0; i < 2 * TRACE_ATTRIBUTES_MAX; i++)
		trace_span_set_number(&span, "n", i);
	assert_int_equal(span.attribute_count, TRACE_ATTRIBUTES_MAX);
}

static void an_endpoint_is_an_address_of_http(void **state)
{
	struct trace_export *export;
	struct err err;

	(void)state;
	assert_true(trace_export_open("collector:4318", &export, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collector_that_hangs_costs_its_spans_and_nothing_else),
		cmocka_unit_test(a_span_is_below_its_traceparent_or_begins_a_trace),
		cmocka_unit_test(only_so_many_attributes_are_kept_and_empty_ones_are_none),
		cmocka_unit_test(an_endpoint_is_an_address_of_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
