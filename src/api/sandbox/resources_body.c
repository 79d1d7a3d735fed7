/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/resources_body.h"

#include <math.h>

const struct field sandbox_resources_rows[SANDBOX_RESOURCES_ROWS] = {
	{"cpu", FIELD_NUMBER, offsetof(struct sandbox_resources_body, cpu), 1, SPEC_CPU_MAX_CORES,
		FIELD_FRACTION, "Cores; fractions are fine, 0.01 at least."},
	{"memory", FIELD_SIZE, offsetof(struct sandbox_resources_body, memory), SPEC_MEMORY_MIN,
		SPEC_MEMORY_MAX, 0, "Memory, 16Mi at least."},
	{"disk", FIELD_SIZE, offsetof(struct sandbox_resources_body, disk), SPEC_DISK_MIN,
		SPEC_DISK_MAX, 0, "Disk: all that it writes outside of /dev/shm."},
	{"pids", FIELD_INTEGER, offsetof(struct sandbox_resources_body, pids), SPEC_PIDS_MIN,
		SPEC_PIDS_MAX, 0, "Processes and threads."},
};

static uint64_t number_from(int64_t value)
{
	return value == FIELD_ABSENT ? 0 : (uint64_t)value;
}

/* Less than 0.01 of a core must not become 0, which asks for the default. */
int resources_body_decode(const struct sandbox_resources_body *body, const char *prefix,
	struct resources *ret_resources, struct err *err)
{
	uint64_t millis = isnan(body->cpu) ? 0 : (uint64_t)llround(body->cpu * 1000);

	if (!isnan(body->cpu) && millis < SPEC_CPU_MIN_MILLIS)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field %sresources.cpu must be from 0.01 to 1024", prefix);
	*ret_resources = (struct resources){.cpu_millis = millis,
		.memory_bytes = number_from(body->memory),
		.disk_bytes = number_from(body->disk),
		.pids = number_from(body->pids)};
	return 0;
}
