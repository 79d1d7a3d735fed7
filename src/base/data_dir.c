/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data_dir.h"

#include <stdlib.h>

char *data_dir_of_user(void)
{
	const char *data_home = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	/* The specification says that a path that is not absolute is ignored. */
	if (data_home && data_home[0] == '/')
		return mem_printf("%s/sandlot", data_home);
	return home && home[0] == '/' ? mem_printf("%s/.local/share/sandlot", home) : NULL;
}
