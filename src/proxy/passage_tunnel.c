/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/passage_tunnel.h"

void passage_tunnel_start(struct passage *passage)
{
	struct side *client = &passage->client, *app = &passage->app;

	passage->state = PASSAGE_TUNNEL;
	/* What came early is already part of the conversation. */
	buf_append(&app->out, client->in.data, client->in.len);
	buf_append(&client->out, app->in.data, app->in.len);
	buf_fini(&client->in);
	buf_fini(&app->in);
	message_fini(&passage->request);
	message_fini(&passage->response);
}

/* A client may still have to read what the app said last. */
static void end_tunnel(struct side *ended)
{
	struct passage *passage = ended->passage;

	if (ended == &passage->client) {
		passage_end(passage);
		return;
	}
	side_close(&passage->app);
	passage->state = PASSAGE_LAST;
}

/* From one side to the other; whether something moved. */
static bool move_bytes(struct side *from)
{
	struct side *to = side_other(from);
	bool moved = false;

	if (side_has_room(to) && side_receive(from)) {
		buf_append(&to->out, from->in.data, from->in.len);
		buf_fini(&from->in);
		moved = true;
	}
	moved |= side_flush(to);
	if (from->has_ended && to->out.len == 0) {
		end_tunnel(from);
		return true;
	}
	return moved;
}

bool passage_tunnel_move(struct passage *passage)
{
	bool moved = move_bytes(&passage->client);

	if (passage->state == PASSAGE_TUNNEL)
		moved |= move_bytes(&passage->app);
	return moved;
}
