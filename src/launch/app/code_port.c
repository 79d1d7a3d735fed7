/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/code_port.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* A port that a text begins with; 0: none, or more than a number. */
static uint16_t read_port(const char *text)
{
	size_t len = strspn(text, "0123456789"), rest = len + strspn(text + len, " ");
	unsigned long port = len > 0 && len < 6 ? strtoul(text, NULL, 10) : 0;

	return port <= 65535 && (!text[rest] || strchr(",);}\r\n", text[rest])) ? (uint16_t)port
										: 0;
}

/* ".listen(3000)", or ".listen(port)" with "port = 3000" elsewhere. */
static uint16_t node_port(const char *text, const char **ret_at)
{
	const char *at = strstr(text, ".listen("), *name = at ? at + strlen(".listen(") : "";
	auto_free char *set = mem_printf("%.*s = ",
		(int)strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"), name);
	uint16_t port = read_port(name);

	*ret_at = at;
	if (!port && at && set[0] != ' ' && (at = strstr(text, set))) {
		*ret_at = at;
		port = read_port(at + strlen(set));
	}
	return port;
}

/* "app.run(port=3000)", or "HTTPServer(("", 3000), H)". */
static uint16_t python_port(const char *text, const char **ret_at)
{
	static const struct {
		const char *call, *before;
	} calls[] = {{".run(", "port="}, {"Server((", ", "}};

	for (size_t i = 0; i < array_len(calls); i++) {
		const char *at = strstr(text, calls[i].call);
		const char *word = at ? strstr(at, calls[i].before) : NULL;

		*ret_at = at;
		if (word && word < at + strcspn(at, ")"))
			return read_port(word + strlen(calls[i].before));
	}
	return 0;
}

uint16_t code_port_find(const char *text, enum app_runtime runtime, const char **ret_at)
{
	return runtime == RUNTIME_NODE	   ? node_port(text, ret_at)
	       : runtime == RUNTIME_PYTHON ? python_port(text, ret_at)
					   : 0;
}
