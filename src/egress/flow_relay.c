/* SPDX-License-Identifier: Apache-2.0 */
/* What passes on a connection that was made: bytes, once its first were looked at; or requests, if it is an errand. */
#include "egress/client_hello.h"
#include "egress/flow_private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define HALF_OPEN_MS 120000 /* without a byte, after one side has ended */
#define TURN_BYTES   (1 << 20)

/* Reads the first bytes until it is known whom they ask for; LANE_MORE: they may go. */
static enum lane_result screen(struct flow *flow)
{
	char name[EGRESS_NAME_MAX] = "";
	int r = client_hello_read(flow->first.data, flow->first.len, name);

	while (r == -EAGAIN) {
		uint8_t bytes[4096];
		ssize_t n = recv(flow->client.fd, bytes, sizeof(bytes), 0);

		if (n < 0 && errno == EAGAIN)
			return LANE_WAITS;
		if (n <= 0)
			break; /* it ended, or broke: what there is passes on, and then that */
		r = buf_append(&flow->first, bytes, (size_t)n);
		if (r == 0)
			r = client_hello_read(flow->first.data, flow->first.len, name);
	}
	if ((r < 0 && r != -EAGAIN) || (r == 1 && strcmp(name, flow->target.name) != 0)) {
		flow_note_denial(flow, name, EGRESS_OTHER_NAME);
		return LANE_BROKEN;
	}
	flow->is_screened = true;
	return LANE_MORE;
}

/* Sends what was read ahead; LANE_MORE: it is all gone. */
static enum lane_result send_first(struct flow *flow)
{
	while (flow->first.len > 0) {
		ssize_t n =
			send(flow->upstream.fd, flow->first.data, flow->first.len, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? LANE_WAITS : LANE_BROKEN;
		buf_consume(&flow->first, (size_t)n);
		flow->sluice->counters.tx_bytes += (uint64_t)n;
		sluice_spend(flow->sluice, (size_t)n);
	}
	return LANE_MORE;
}

/* Moves what one side has for the other, within the sandbox's bandwidth. */
static enum lane_result move(
	struct flow *flow, struct lane *lane, int from, int to, uint64_t *counter)
{
	size_t budget = sluice_budget(flow->sluice, TURN_BYTES), left = budget;
	enum lane_result result;

	if (budget == 0 && lane->held == 0 && !lane->is_ended)
		return LANE_MORE;
	result = lane_move(lane, &flow->sluice->station->pipes, from, to, &left);
	*counter += budget - left;
	sluice_spend(flow->sluice, budget - left);
	return result;
}

void flow_relay_bytes(struct flow *flow)
{
	struct sluice *sluice = flow->sluice;
	enum lane_result out = flow->is_screened ? LANE_MORE : screen(flow), in;

	if (out == LANE_MORE)
		out = send_first(flow);
	if (out == LANE_MORE)
		out = move(flow, &flow->out, flow->client.fd, flow->upstream.fd,
			&sluice->counters.tx_bytes);
	in = move(flow, &flow->in, flow->upstream.fd, flow->client.fd, &sluice->counters.rx_bytes);
	if (out == LANE_BROKEN || in == LANE_BROKEN) {
		flow_cut(flow);
	} else if (flow->out.is_done && flow->in.is_done) {
		flow_end(flow);
	} else {
		flow->is_throttled = (out == LANE_MORE || in == LANE_MORE) &&
				     sluice_budget(sluice, TURN_BYTES) == 0;
		if ((out == LANE_MORE || in == LANE_MORE) && !flow->is_throttled)
			dispatcher_requeue(sluice->station->dispatcher, &flow->client);
		flow_set_deadline(flow, flow->out.is_done || flow->in.is_done ? HALF_OPEN_MS : 0);
	}
}

/* Requests one by one, within the sandbox's bandwidth. */
void flow_relay_requests(struct flow *flow)
{
	struct sluice *sluice = flow->sluice;
	struct errand_turn turn = {.budget = sluice_budget(sluice, TURN_BYTES)};
	enum errand_result result = errand_move(flow->errand, &turn);
	const char *status, *text;

	sluice->counters.tx_bytes += turn.sent;
	sluice->counters.rx_bytes += turn.received;
	sluice_spend(sluice, turn.sent + turn.received);
	switch (result) {
	case ERRAND_WAITS:
	case ERRAND_MORE:
		flow->is_throttled =
			result == ERRAND_MORE && sluice_budget(sluice, TURN_BYTES) == 0;
		if (result == ERRAND_MORE && !flow->is_throttled)
			dispatcher_requeue(sluice->station->dispatcher, &flow->client);
		if (errand_is_shaking(flow->errand))
			flow_update_wait(flow);
		else
			flow_set_deadline(
				flow, errand_is_half_open(flow->errand) ? HALF_OPEN_MS : 0);
		break;
	case ERRAND_OVER:
		flow_begin_farewell(flow);
		break;
	case ERRAND_BROKEN:
		flow_cut(flow);
		break;
	case ERRAND_REFUSED:
		errand_refusal(flow->errand, &status, &text);
		flow_turn_away(flow, status, text);
		break;
	}
}
