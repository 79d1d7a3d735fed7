/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/host_file.h"

#include "base/fd.h"

#include <stdlib.h>
#include <string.h>

const char *host_file_read(const struct host *host, const char *path, char *text, size_t size)
{
	ssize_t n = fd_read_file(host->root_fd, path, text, size);

	if (n < 0)
		return NULL;
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	return text;
}

long long host_file_number(const struct host *host, const char *path, long long absent)
{
	char text[64];

	return host_file_read(host, path, text, sizeof(text)) ? atoll(text) : absent;
}

bool host_file_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len) {
		bool begins = at == text || strchr(" ,\t\n", at[-1]);

		if (begins && (!at[len] || strchr(" ,\t\n", at[len])))
			return true;
	}
	return false;
}
