/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/preview.h"

#include "core/engine/agent_link.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/sandbox.h"

#include <errno.h>
#include <string.h>

/* On a loopback, more means that the app takes no connections at present; a thread is held meanwhile. */
#define CONNECT_MS 100
#define LOOK_MS	   500
#define WAITS_MAX  4 /* threads that wait for one sandbox at a time: all sandboxes share them */

/*
 * A connection to a loopback is made or refused at once, as a rule. Only if it is neither, a few
 * threads wait for it.
 */
int preview_connect(struct sandbox *sandbox, uint16_t port, int *ret_fd, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = driver->ops->dial(driver, sandbox->id, port, 0, ret_fd, err);

	if (r == 0 || strcmp(err->code, DRIVER_PORT_BUSY) != 0)
		return r;
	if (atomic_fetch_add(&sandbox->waits, 1) < WAITS_MAX)
		r = driver->ops->dial(driver, sandbox->id, port, CONNECT_MS, ret_fd, err);
	atomic_fetch_sub(&sandbox->waits, 1);
	return r;
}

int preview_wake(struct sandbox *sandbox, struct err *err)
{
	struct agent_link *link;
	bool is_paused;
	int r = 0;

	pthread_mutex_lock(&sandbox->state);
	is_paused = sandbox->record.status == SANDBOX_PAUSED;
	pthread_mutex_unlock(&sandbox->state);
	if (is_paused)
		r = sandbox_resume(sandbox, err);
	if (r == 0)
		r = sandbox_use(sandbox, &link, err);
	if (r == 0)
		agent_link_unref(link);
	return r;
}

int preview_look_around(struct sandbox *sandbox, struct port_list *ret_list)
{
	struct err ignored;
	int r = -EBUSY;

	if (atomic_fetch_add(&sandbox->waits, 1) < WAITS_MAX)
		r = port_list_read(sandbox, LOOK_MS, ret_list, &ignored);
	atomic_fetch_sub(&sandbox->waits, 1);
	return r;
}
