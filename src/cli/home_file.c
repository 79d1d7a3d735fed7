/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/home_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *home_file_path(const char *variable, const char *below_home, const char *file)
{
	const char *base = getenv(variable), *home = getenv("HOME");

	if (base && base[0] == '/')
		return mem_printf("%s/%s", base, file);
	return home && home[0] == '/' ? mem_printf("%s/%s/%s", home, below_home, file) : NULL;
}

int home_file_make_parents(char *path, mode_t mode, struct err *err)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		r = mkdir(path, mode) < 0 && errno != EEXIST ? err_sys(err, "make %s", path) : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}
