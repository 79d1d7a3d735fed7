/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/answer.h"

#include "base/fd.h"
#include "http/stream.h"
#include "http/stream_private.h"
#include "http/websocket/websocket_private.h"

#include <jansson.h>

#define PULL_BYTES     (128u * 1024)
#define DOWNLOAD_BLOCK (256u * 1024)

void answer_fini(struct answer *answer)
{
	free(answer->bytes);
	fd_close(answer->fd);
	/* Also one that never got as far as being sent: its producer is told in any case. */
	if (answer->stream)
		stream_unbind(answer->stream);
	stream_unref(answer->stream);
	if (answer->websocket)
		websocket_abandon(answer->websocket);
	*answer = (struct answer){.fd = -1, .headers = answer->headers};
}

/* Text as JSON; bytes that are not UTF-8 become question marks. */
static json_t *text_of(const char *text)
{
	json_t *value = json_string(text);

	if (!value) {
		auto_free char *plain = mem_strdup(text);

		for (char *c = plain; *c; c++)
			if ((unsigned char)*c >= 0x80)
				*c = '?';
		value = json_string(plain);
	}
	return value;
}

char *answer_error_text(const struct err *err, const char *request_id, const char *confirm)
{
	bool retryable = err_class((enum err_kind)err->kind)->retryable && !err->is_lasting;
	json_t *error = json_object();
	json_t *document = json_object();
	char *text;

	json_object_set_new(error, "code", text_of(err->code));
	json_object_set_new(error, "message", text_of(err->message));
	json_object_set_new(error, "retryable", json_boolean(retryable));
	json_object_set_new(
		error, "remediation", err->remedy[0] ? text_of(err->remedy) : json_null());
	json_object_set_new(error, "request_id", json_string(request_id));
	if (confirm)
		json_object_set_new(error, "confirm", json_string(confirm));
	json_object_set_new(document, "error", error);
	text = json_dumps(document, JSON_COMPACT);
	json_decref(document);
	return text ? text : mem_strdup("{}");
}

char *answer_bare_error_text(int status, const struct err *err)
{
	json_t *document =
		json_pack("{s:i, s:o}", "code", status, "message", text_of(err->message));
	char *text = json_dumps(document, JSON_COMPACT);

	json_decref(document);
	return text ? text : mem_strdup("{}");
}

/* A download of unknown size goes out in chunks, from the connection's own buffer, and so does what is offered. */
size_t answer_buffer(const struct answer *answer)
{
	if (answer->kind == ANSWER_STREAM)
		return stream_is_pulled(answer->stream) ? PULL_BYTES : 1;
	if (answer->size == UINT64_MAX || answer->size == 0)
		return 1;
	return answer->size < DOWNLOAD_BLOCK ? (size_t)answer->size : DOWNLOAD_BLOCK;
}
