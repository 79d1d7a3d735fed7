/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/archive_library.h"

#include <dlfcn.h>
#include <locale.h>

/* The name that the headers of libarchive 3 go with. */
#define LIBRARY "libarchive.so.13"

int archive_library_load(struct archive_library *ret, struct err *err)
{
	struct archive_library library;
	void *handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

	if (!handle)
		return err_explain(err, ERR_INTERNAL, NULL, "sudo apt install libarchive13",
			"copying a directory needs %s, which cannot be loaded", LIBRARY);
#define X(function)                                                                                \
	library.function = (__typeof__(library.function))dlsym(handle, #function);                 \
	if (!library.function)                                                                     \
		return err_set(err, ERR_INTERNAL, "%s has no " #function, LIBRARY);
	ARCHIVE_LIBRARY_FUNCTIONS(X)
#undef X
	/* In the C locale it would refuse to translate every name that is not ASCII. */
	setlocale(LC_CTYPE, "C.UTF-8");
	*ret = library;
	return 0;
}
