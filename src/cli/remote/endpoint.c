/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/endpoint.h"

#include <stdio.h>
#include <string.h>

int endpoint_parse(const char *text, struct endpoint *ret, struct err *err)
{
	size_t id_len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz-");
	const char *path = text + id_len + 1;
	size_t len = strlen(text);

	*ret = (struct endpoint){0};
	if (strcmp(text, "-") == 0) {
		ret->kind = ENDPOINT_STDIO;
		return 0;
	}
	if (len == 0)
		return err_set(err, ERR_INVALID, "an empty path names nothing");
	ret->names_a_dir = text[len - 1] == '/' || text[len - 1] == ':';
	if (id_len == 0 || text[0] == '-' || id_len >= sizeof(ret->id) || text[id_len] != ':') {
		ret->kind = ENDPOINT_LOCAL;
		ret->path = mem_strdup(text);
		return 0;
	}
	ret->kind = ENDPOINT_REMOTE;
	snprintf(ret->id, sizeof(ret->id), "%.*s", (int)id_len, text);
	ret->path = path[0] == '/' ? mem_strdup(path)
		    : path[0]	   ? endpoint_join(ENDPOINT_HOME, path)
				   : mem_strdup(ENDPOINT_HOME);
	return 0;
}

void endpoint_fini(struct endpoint *endpoint)
{
	free(endpoint->path);
	endpoint->path = NULL;
}

char *endpoint_basename(const char *path)
{
	size_t end = strlen(path);
	size_t begin;
	char *name;

	while (end > 0 && path[end - 1] == '/')
		end--;
	begin = end;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	name = mem_printf("%.*s", (int)(end - begin), path + begin);
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		free(name);
		return NULL;
	}
	return name;
}

char *endpoint_join(const char *dir, const char *name)
{
	size_t len = strlen(dir);

	return mem_printf("%s%s%s", dir, len > 0 && dir[len - 1] == '/' ? "" : "/", name);
}
