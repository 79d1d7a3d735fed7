/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/since.h"

#include "base/clock.h"
#include "cli/text/human.h"

int since_parse(const char *text, int64_t *ret_wall_ms, struct err *err)
{
	uint64_t ago_ms;
	int64_t at_ms;

	if (human_parse_time(text, &at_ms) == 0)
		*ret_wall_ms = at_ms;
	else if (human_parse_duration(text, &ago_ms) == 0)
		*ret_wall_ms = clock_wall_ms() - (int64_t)ago_ms;
	else
		return err_set(err, ERR_INVALID,
			"--since takes how long ago, such as 10m, or a time such as "
			"2026-01-02T03:04:05Z, not \"%s\"",
			text);
	return 0;
}
