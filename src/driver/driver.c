/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const char *const names[] = {
	[DRIVER_FREEZE] = "freeze",
	[DRIVER_DISK_LIMIT] = "disk_limit",
	[DRIVER_LIVE_RESIZE] = "live_resize",
	[DRIVER_EGRESS_POLICY] = "egress_policy",
	[DRIVER_ISOLATED_EXEC] = "isolated_exec",
	[DRIVER_ADOPT] = "adopt",
	[DRIVER_LAYERS] = "layers",
	[DRIVER_SNAPSHOTS] = "snapshots",
	[DRIVER_PROJECT_FILES] = "project_files",
	[DRIVER_MEMBERS] = "members",
};

static_assert(array_len(names) == DRIVER_CAPABILITY_COUNT, "every capability has a name");

const char *driver_capability_name(enum driver_capability capability)
{
	return names[capability];
}

int driver_explain_port(const char *id, uint16_t port, int negative_errno, struct err *err)
{
	if (negative_errno == -ETIMEDOUT)
		return err_explain(err, ERR_UNAVAILABLE, DRIVER_PORT_BUSY, NULL,
			"what listens on port %u of sandbox %s takes no connections at present",
			port, id);
	return err_explain(err, ERR_UNAVAILABLE, DRIVER_PORT_CLOSED,
		"start the app, and have it listen on this port",
		"nothing answers on port %u of sandbox %s: %s", port, id,
		strerror(-negative_errno));
}

int driver_give_name(struct driver *driver, const char *id, const char *name, struct err *err)
{
	if (!name[0] || !driver->ops->set_hostname)
		return 0;
	return driver->ops->set_hostname(driver, id, name, err);
}
