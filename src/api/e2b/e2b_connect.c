/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/e2b_connect.h"

#include "http/server/request/request_answer.h"

#include <stdint.h>
#include <string.h>

#define HEAD_LEN 5
#define FLAG_END 2
#define MESSAGE_MAX                                                                                \
	(64u << 20) /* what an answer may have; a request has REQUEST_BODY_MAX at most */

int e2b_connect_read(const void *data, size_t len, json_t **ret_message, struct err *err)
{
	const uint8_t *bytes = data;
	uint64_t size = 0;
	json_t *message;

	if (len < HEAD_LEN)
		return err_set(err, ERR_INVALID, "the envelope is cut short");
	if (bytes[0] != 0)
		return err_set(err, ERR_INVALID, "envelopes with flags %u are not taken", bytes[0]);
	for (int i = 1; i < HEAD_LEN; i++)
		size = size << 8 | bytes[i];
	if (size != len - HEAD_LEN)
		return err_set(err, ERR_INVALID,
			"the envelope says that it has %llu bytes, and %zu follow",
			(unsigned long long)size, len - HEAD_LEN);
	message = json_loadb((const char *)bytes + HEAD_LEN, size, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(message)) {
		json_decref(message);
		return err_set(err, ERR_INVALID, "the envelope holds no JSON object");
	}
	*ret_message = message;
	return 0;
}

static void put(struct buf *out, uint8_t flags, json_t *message)
{
	auto_free char *text = json_dumps(message, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;
	uint8_t head[HEAD_LEN] = {flags, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
		(uint8_t)(len >> 8), (uint8_t)len};

	json_decref(message);
	buf_append(out, head, sizeof(head));
	buf_append(out, text, len);
}

void e2b_connect_put(struct buf *out, json_t *message)
{
	put(out, 0, message);
}

void e2b_connect_put_end(struct buf *out, const char *code, const char *message)
{
	put(out, FLAG_END,
		code ? json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message)
		     : json_object());
}

static const struct {
	const char *code;
	int status; /* that tells it */
} codes[] = {
	{"invalid_argument", 400},
	{"unauthenticated", 401},
	{"permission_denied", 403},
	{"not_found", 404},
	{"already_exists", 409},
	{"resource_exhausted", 429},
	{"internal", 500},
	{"unimplemented", 501},
	{"unavailable", 503},
	{"deadline_exceeded", 504},
};

const char *e2b_connect_code(int status, const json_t *error)
{
	const char *reason =
		json_string_value(json_object_get(json_object_get(error, "error"), "code"));

	if (reason && strcmp(reason, "sandbox_not_found") == 0)
		return "unavailable";
	if (status == 409 || status == 413 || status == 415)
		return "invalid_argument";
	if (status == 507)
		return "resource_exhausted";
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (codes[i].status == status)
			return codes[i].code;
	}
	return "internal";
}

void e2b_connect_answer_error(
	struct request *req, bool is_stream, const char *code, const char *message)
{
	struct buf out = BUF_INIT(MESSAGE_MAX);
	int status = 500;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcmp(codes[i].code, code) == 0)
			status = codes[i].status;
	}
	if (!is_stream) {
		request_answer_json(
			req, status, json_pack("{s:s, s:s}", "code", code, "message", message));
		return;
	}
	e2b_connect_put_end(&out, code, message);
	request_answer_bytes(req, 200, E2B_CONNECT_STREAM, out.data, out.len);
	buf_fini(&out);
}
