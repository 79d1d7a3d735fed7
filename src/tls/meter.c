/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/meter.h"

#include "base/mem.h"

struct meter *meter_new(void)
{
	struct meter *meter = mem_new(sizeof(*meter));

	atomic_init(&meter->refs, 2);
	return meter;
}

void meter_unref(struct meter *meter)
{
	if (meter && atomic_fetch_sub(&meter->refs, 1) == 1)
		free(meter);
}
