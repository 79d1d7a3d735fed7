/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of drivers of sandlotd-fake, which is sandlotd with the driver of the unit tests alone: one
 * that needs no keeper and no privileges. tests/e2e/driver.test.mjs starts it.
 */
#include "core_fixture.h"
#include "driver/driver_table.h"

#include <string.h>

static struct fake_driver fake;

static int open_fake(
	const struct driver_config *config, struct driver **ret_driver, struct err *err)
{
	(void)config;
	(void)err;
	fake_init(&fake);
	*ret_driver = &fake.base;
	return 0;
}

static const struct driver_kind kind = {
	.name = "fake", .capabilities = FAKE_CAPABILITIES, .open = open_fake};

const struct driver_kind *driver_table_list(size_t *ret_count)
{
	*ret_count = 1;
	return &kind;
}

int driver_table_find(const char *name, const struct driver_kind **ret_kind, struct err *err)
{
	if (strcmp(name, kind.name) != 0)
		return err_set(err, ERR_INVALID, "there is no driver %.32s", name);
	*ret_kind = &kind;
	return 0;
}
