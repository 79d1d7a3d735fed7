/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process/system_call.h"

#include "base/mem.h"
#include "system_call_names.h"

#include <stdio.h>
#include <sys/syscall.h>

bool system_call_is_hint(uint32_t number)
{
	static const uint32_t hints[] = {
		SYS_mbind, SYS_migrate_pages, SYS_move_pages, SYS_set_mempolicy};

	for (size_t i = 0; i < array_len(hints); i++) {
		if (hints[i] == number)
			return true;
	}
	return false;
}

const char *system_call_name(uint32_t number, char spare[SYSTEM_CALL_DIGITS])
{
	if (number < array_len(system_call_names) && system_call_names[number])
		return system_call_names[number];
	snprintf(spare, SYSTEM_CALL_DIGITS, "%u", number);
	return spare;
}
