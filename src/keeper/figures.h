/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses, and whom the kernel killed in it for want of memory. */
#pragma once

#include "keeper/office.h"

int figures_read(struct keeper *keeper, const struct held *held, struct keeper_stats *ret_stats,
	struct err *err) must_check;
