/* SPDX-License-Identifier: Apache-2.0 */
#include "model/system_call.h"

#include "base/mem.h"
#include "system_call_names.h"

#include <stdio.h>

const char *system_call_name(uint32_t number, char spare[SYSTEM_CALL_DIGITS])
{
	if (number < array_len(system_call_names) && system_call_names[number])
		return system_call_names[number];
	snprintf(spare, SYSTEM_CALL_DIGITS, "%u", number);
	return spare;
}
