/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request, past the HTTP library: a line "METHOD target", then lines "Name: value". All
 * that the server decides before a handler runs is asked, over the table of what is served.
 */
#include "api/routes.h"
#include "http/listener.h"
#include "http/server/route/guard.h"
#include "http/server/route/handshake.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Once an error is told it is whole, and of a kind that blames the client. */
static void check_refusal(int r, const struct err *err)
{
	assert(r < 0 && err->kind > ERR_NONE && err->kind < ERR_KIND_COUNT);
	assert(err->kind != ERR_INTERNAL && err->code[0] && err->message[0]);
	assert(err_class((enum err_kind)err->kind)->http_status < 500);
}

static void check_target(const char *raw, enum method method, struct arena *arena)
{
	struct router_match match = {0};
	struct target target;
	struct router *router;
	struct err err = {0};
	size_t count;
	int r = target_parse(raw, arena, &target, &err);

	if (r < 0) {
		check_refusal(r, &err);
		return;
	}
	assert(raw[0] == '/' && strlen(raw) <= TARGET_MAX);
	assert(target.segment_count <= TARGET_SEGMENTS && target.param_count <= TARGET_PARAMS);
	for (unsigned i = 0; i < target.param_count; i++)
		assert(target_query(&target, target.params[i].name) == target.params[i].value ||
			target.repeated);
	router = router_new(routes_table(&count), count);
	r = router_find(router, method, &target, arena, &match, &err);
	if (r < 0)
		check_refusal(r, &err);
	else
		for (unsigned i = 0; i < target.param_count; i++)
			(void)!routes_take_query(match.route, target.params[i].name);
	router_free(router);
}

static void check_framing(const struct headers *headers)
{
	static const unsigned kinds[] = {0, ROUTE_BODY, ROUTE_RAW_BODY};
	struct guard_body body = {0};
	struct err err = {0};
	int r = guard_read_framing(headers, false, &body, &err);

	if (r < 0) {
		check_refusal(r, &err);
		return;
	}
	/* Never two ways to find its end. */
	assert(!headers_get(headers, "Content-Length") ||
		!headers_get(headers, "Transfer-Encoding"));
	assert((body.size == GUARD_UNKNOWN_SIZE) == !!headers_get(headers, "Transfer-Encoding"));
	for (size_t i = 0; i < array_len(kinds); i++) {
		r = guard_check_body(kinds[i], headers, &body, &err);
		if (r < 0)
			check_refusal(r, &err);
		else
			assert(!body.present || kinds[i] || body.size <= GUARD_EMPTY_MAX ||
				body.size == GUARD_UNKNOWN_SIZE);
	}
}

static void check_source(const struct headers *headers, enum method method)
{
	static const char *const hosts[] = {"sandlot.example", NULL};
	struct listener listener = {.host = "127.0.0.1", .port = 9090};
	struct guard *guard = guard_new(&listener, hosts);
	const char *host = headers_get(headers, "Host"), *token = NULL;
	struct handshake handshake;
	struct err err = {0};
	int r = guard_check_source(guard, headers, method, &err);

	if (r < 0)
		check_refusal(r, &err);
	else
		assert(strcasecmp(host, "127.0.0.1:9090") == 0 ||
			strcasecmp(host, "localhost:9090") == 0 ||
			strcasecmp(host, "[::1]:9090") == 0 ||
			strcasecmp(host, "sandlot.example") == 0 ||
			strcasecmp(host, "sandlot.example:9090") == 0);
	r = guard_read_token(headers, &token, &err);
	if (r < 0)
		check_refusal(r, &err);
	else
		assert(token[0] && strlen(token) <= GUARD_TOKEN_MAX);
	r = handshake_read(headers, "pty.v1", &handshake, &err);
	if (r < 0)
		check_refusal(r, &err);
	else
		assert(strlen(handshake.accept) == HANDSHAKE_ACCEPT_LEN);
	guard_free(guard);
}

/* Adds the lines until one is refused. */
static void read_lines(char *text, struct headers *headers, struct arena *arena)
{
	char *line;
	struct err err = {0};
	int r = 0;

	headers->list = arena_alloc(arena, HEADERS_MAX * sizeof(*headers->list));
	while (r == 0 && (line = strsep(&text, "\n"))) {
		char *value = strchr(line, ':');

		if (!value)
			return;
		*value++ = '\0';
		value += strspn(value, " ");
		r = headers_add(headers, arena, &(struct header){line, value}, &err);
		if (r < 0)
			check_refusal(r, &err);
		else
			assert(headers_get(headers, line) && headers->count <= HEADERS_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_new(size + 1), *rest = text, *line, *method;
	struct headers headers = {0};
	struct arena arena = {0};

	if (size > 0)
		memcpy(text, data, size);
	line = strsep(&rest, "\n");
	method = strsep(&line, " ");
	check_target(line ? line : "", method_parse(method), &arena);
	read_lines(rest ? rest : text + size, &headers, &arena);
	check_source(&headers, method_parse(method));
	check_framing(&headers);
	arena_fini(&arena);
	free(text);
	return 0;
}
