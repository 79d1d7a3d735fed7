/* SPDX-License-Identifier: Apache-2.0 */
#include "http/websocket/websocket_input.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define ROUND_MAX    (256u * 1024) /* read before others have their turn */
#define CONTROLS_MAX 64		   /* answers to pings that may wait before reading stops */
#define EARLY_MAX    (64u * 1024)  /* more than the HTTP library has of a connection */

/* --- what wslay calls --- */

static bool may_read_on(struct websocket_input *input)
{
	return !input->is_drained && input->round < ROUND_MAX &&
	       !websocket_input_is_choked(input) && input->ops->may_read(input->owner);
}

static ssize_t read_bytes(struct websocket_input *input, uint8_t *data, size_t len)
{
	ssize_t n;

	if (input->early.len > 0) {
		n = (ssize_t)(len < input->early.len ? len : input->early.len);
		memcpy(data, input->early.data, (size_t)n);
		buf_consume(&input->early, (size_t)n);
		if (input->early.len == 0)
			buf_fini(&input->early);
	} else {
		n = recv(input->sock, data, len, MSG_DONTWAIT);
		input->is_drained = n < (ssize_t)len;
		input->has_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	}
	input->round += n > 0 ? (size_t)n : 0;
	return n;
}

static ssize_t on_read(
	wslay_event_context_ptr parser, uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket_input *input = arg;
	ssize_t n = may_read_on(input) ? read_bytes(input, data, len) : -1;

	(void)flags;
	if (n > 0)
		return n;
	wslay_event_set_error(
		parser, input->has_ended ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static void on_frame(wslay_event_context_ptr parser,
	const struct wslay_event_on_frame_recv_start_arg *frame, void *arg)
{
	struct websocket_input *input = arg;

	input->in_control = wslay_is_ctrl_frame(frame->opcode);
	if (input->in_control)
		return;
	/* wslay has looked at the size of the frame; it does not know that of the message. */
	if (input->message.len + frame->payload_length > input->max ||
		buf_reserve(&input->message, (size_t)frame->payload_length + 1) < 0) {
		wslay_event_shutdown_read(parser);
		wslay_event_queue_close(parser, WSLAY_CODE_MESSAGE_TOO_BIG, NULL, 0);
	}
}

static void on_piece(wslay_event_context_ptr parser,
	const struct wslay_event_on_frame_recv_chunk_arg *piece, void *arg)
{
	struct websocket_input *input = arg;

	if (!input->in_control && wslay_event_get_read_enabled(parser))
		buf_append(&input->message, piece->data, piece->data_length);
}

static void on_message(wslay_event_context_ptr parser,
	const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
	struct websocket_input *input = arg;

	if (input->in_control || !wslay_event_get_read_enabled(parser))
		return;
	input->message.data[input->message.len] = '\0'; /* on_frame() left room for it */
	input->ops->message(input->owner, message->opcode == WSLAY_TEXT_FRAME, input->message.data,
		input->message.len);
	input->message.len = 0;
}

static ssize_t on_write(
	wslay_event_context_ptr parser, const uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket_input *input = arg;

	(void)flags;
	if (input->ops->answer(input->owner, data, len) == 0)
		return (ssize_t)len;
	wslay_event_set_error(parser, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_read,
	.send_callback = on_write,
	.on_frame_recv_start_callback = on_frame,
	.on_frame_recv_chunk_callback = on_piece,
	.on_msg_recv_callback = on_message,
};

/* --- what its owner calls --- */

void websocket_input_init(struct websocket_input *input, size_t max,
	const struct websocket_input_ops *ops, void *owner)
{
	*input = (struct websocket_input){.ops = ops,
		.owner = owner,
		.sock = -1,
		.early = BUF_INIT(EARLY_MAX),
		.max = max,
		.message = BUF_INIT(max + 1)};
}

void websocket_input_fini(struct websocket_input *input)
{
	wslay_event_context_free(take_ptr(&input->parser));
	buf_fini(&input->early);
	buf_fini(&input->message);
}

int websocket_input_open(struct websocket_input *input, int sock, const void *early, size_t len)
{
	if (wslay_event_context_server_init(&input->parser, &callbacks, input) != 0)
		return -ENOMEM;
	wslay_event_config_set_no_buffering(input->parser, 1);
	wslay_event_config_set_max_recv_msg_length(input->parser, input->max);
	input->sock = sock;
	return buf_append(&input->early, early, len);
}

static void drop_input(struct websocket_input *input)
{
	uint8_t data[16384];

	buf_fini(&input->early);
	while (!input->is_drained && !input->has_ended && input->round < ROUND_MAX)
		read_bytes(input, data, sizeof(data));
}

int websocket_input_read(struct websocket_input *input)
{
	int r;

	input->round = 0;
	input->is_drained = input->has_ended = false;
	if (input->drops_input) {
		drop_input(input);
		return 0;
	}
	r = wslay_event_recv(input->parser);
	input->drops_input = !wslay_event_get_read_enabled(input->parser);
	if (input->message.len == 0)
		buf_fini(&input->message);
	/* Of what is wrong with a header, wslay's close frame would not tell. */
	return r == WSLAY_ERR_CALLBACK_FAILURE && !input->has_ended ? -EPROTO : 0;
}

bool websocket_input_has_answers(const struct websocket_input *input)
{
	return wslay_event_want_write(input->parser);
}

bool websocket_input_is_choked(const struct websocket_input *input)
{
	return wslay_event_get_queued_msg_count(input->parser) > CONTROLS_MAX;
}

int websocket_input_answer(struct websocket_input *input)
{
	return wslay_event_send(input->parser) == 0 ? 0 : -EPIPE;
}
