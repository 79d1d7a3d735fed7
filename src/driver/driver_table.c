/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_table.h"

#include "base/format.h"
#include "driver/native/keeper_start.h"
#include "driver/native/native.h"

#include <string.h>

static const struct driver_kind kinds[] = {
	{.name = "native",
		.capabilities = NATIVE_CAPABILITIES,
		.check_user = keeper_start_check_user,
		.prepare = keeper_start,
		.helper = "the keeper",
		.is_gone = keeper_start_is_gone,
		.end = native_end,
		.open = native_open},
};

const struct driver_kind *driver_table_list(size_t *ret_count)
{
	*ret_count = array_len(kinds);
	return kinds;
}

int driver_table_find(const char *name, const struct driver_kind **ret_kind, struct err *err)
{
	char names[120] = "";
	size_t len = 0;

	for (size_t i = 0; i < array_len(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			*ret_kind = &kinds[i];
			return 0;
		}
		len = format_append(
			names, sizeof(names), len, "%s%s", i > 0 ? ", " : "", kinds[i].name);
	}
	return err_explain(err, ERR_INVALID, "driver_not_found", NULL,
		"there is no driver %.32s; the drivers are: %s", name, names);
}
