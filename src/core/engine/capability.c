/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/capability.h"

#include "model/sandbox/network_default.h"

#include <assert.h>

/* What a client asked for, and what it can do instead; NULL: nothing. */
static const struct {
	const char *what;
	const char *remedy;
} wants[] = {
	[DRIVER_FREEZE] = {"pause a sandbox", "stop it, which keeps its workspace"},
	[DRIVER_DISK_LIMIT] = {"limit the disk of a sandbox", "leave out resources.disk"},
	[DRIVER_LIVE_RESIZE] = {"change the limits of a sandbox that runs", "stop it first"},
	[DRIVER_EGRESS_POLICY] = {"judge connections out of a sandbox",
		"create it with the network mode `none` and without secrets"},
	[DRIVER_ISOLATED_EXEC] = {"isolate a command", "leave out isolate"},
	[DRIVER_ADOPT] = {"take up a sandbox that runs already", NULL},
	[DRIVER_LAYERS] = {"start sandboxes from images", "use the template `host`"},
	[DRIVER_SNAPSHOTS] = {"make snapshots", NULL},
	[DRIVER_PROJECT_FILES] = {"show the files of a project", "leave out project"},
	[DRIVER_MEMBERS] = {"give a sandbox members", NULL},
};

static_assert(array_len(wants) == DRIVER_CAPABILITY_COUNT, "every capability can be refused");

int capability_need(const struct driver *driver, enum driver_capability capability, struct err *err)
{
	if (driver_can(driver, capability))
		return 0;
	return err_explain(err, ERR_INVALID, "unsupported_by_driver", wants[capability].remedy,
		"the driver %s cannot %s", driver->ops->name, wants[capability].what);
}

int capability_check_record(
	const struct driver *driver, const struct sandbox_record *record, struct err *err)
{
	int r = 0;

	if (record->resources.disk_bytes > 0)
		r = capability_need(driver, DRIVER_DISK_LIMIT, err);
	if (r == 0 && network_leads_out(record->network))
		r = capability_need(driver, DRIVER_EGRESS_POLICY, err);
	if (r == 0 && json_object_get(record->image, "stack"))
		r = capability_need(driver, DRIVER_LAYERS, err);
	return r;
}
