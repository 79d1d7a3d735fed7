/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses what the driver cannot do. All of core asks here, so that a request is never carried out
 * in part: a limit or a policy that nothing enforces would be worse than none.
 */
#pragma once

#include "driver/driver.h"
#include "model/sandbox/sandbox_record.h"

/* 0, or ERR_INVALID (unsupported_by_driver) with the driver and what it lacks. */
int capability_need(const struct driver *driver, enum driver_capability capability, struct err *err)
	must_check;

/* The same for all that a sandbox needs in order to be what its record says. */
int capability_check_record(const struct driver *driver, const struct sandbox_record *record,
	struct err *err) must_check;
