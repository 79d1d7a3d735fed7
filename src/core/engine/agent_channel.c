/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/agent_channel.h"

#include "wire/agent.h"
#include "wire/frame.h"

int agent_channel_open(struct engine *engine, const char *sandbox_id, const struct agent_link *link,
	uint16_t kind, const void *payload, size_t len, int *ret_fd, struct err *err)
{
	struct driver *driver = engine_driver(engine);
	struct buf first = BUF_INIT(AGENT_CHANNEL_FIRST_MAX);
	int r;

	frame_put(&first, kind, 0, payload, len);
	if (first.failed)
		r = err_set(err, ERR_TOO_LARGE, "a request to an agent exceeds %u bytes",
			AGENT_CHANNEL_FIRST_MAX);
	else
		r = driver->ops->open_channel(driver, sandbox_id, agent_link_number(link),
			first.data, first.len, ret_fd, err);
	buf_fini(&first);
	return r;
}
