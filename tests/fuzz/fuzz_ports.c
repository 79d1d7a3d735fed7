/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says of the ports of its sandbox: a whole answer, as it came over its channel. */
#include "core/preview/port_list.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_port(const struct port *port)
{
	json_t *json = port_to_json(port);
	size_t len = strnlen(port->command, sizeof(port->command));

	assert(json && port->number > 0 && len <= AGENT_NAME_MAX);
	for (size_t i = 0; i < len; i++)
		assert(port->command[i] >= 0x20 && port->command[i] < 0x7f);
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct port_list list;
	uint8_t *copy = mem_new(size ? size : 1); /* so that a read past its end is seen */
	int r;

	memcpy(copy, data, size);
	r = port_list_parse(copy, size, &list);
	assert(r == 1 || r == 0 || r == -EPROTO);
	if (r == 1) {
		assert(list.count <= AGENT_PORTS_MAX && size <= PORT_LIST_ANSWER_MAX);
		for (size_t i = 0; i < list.count; i++)
			check_port(&list.ports[i]);
		for (size_t i = 1; i < list.count; i++)
			assert(port_compare(&list.ports[i - 1], &list.ports[i]) < 0);
		port_list_fini(&list);
	}
	free(copy);
	return 0;
}
