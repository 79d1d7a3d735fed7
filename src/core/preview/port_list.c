/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/port_list.h"

#include "base/clock.h"
#include "base/fd.h"
#include "core/engine/agent_channel.h"
#include "core/engine/sandbox_state.h"
#include "core/files/file_channel.h"
#include "wire/pack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

void port_list_fini(struct port_list *list)
{
	free(list->ports);
	*list = (struct port_list){0};
}

int port_compare(const struct port *a, const struct port *b)
{
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return memcmp(&a->address, &b->address, sizeof(a->address));
}

/* --- parsing --- */

static void take_name(struct unpack *in, char name[AGENT_NAME_MAX + 1])
{
	size_t len;
	const uint8_t *bytes = unpack_bytes(in, &len);

	if (len > AGENT_NAME_MAX) {
		in->bad = true;
		return;
	}
	for (size_t i = 0; i < len; i++)
		name[i] = bytes[i] >= 0x20 && bytes[i] < 0x7f ? (char)bytes[i] : '?';
	name[len] = '\0';
}

static void take_port(struct unpack *in, struct port *port)
{
	uint32_t number;

	for (size_t i = 0; i < sizeof(port->address); i++)
		port->address.s6_addr[i] = unpack_u8(in);
	number = unpack_u32(in);
	port->number = (uint16_t)number;
	port->pid = unpack_u32(in);
	port->process = unpack_u32(in);
	take_name(in, port->command);
	if (number < 1 || number > UINT16_MAX || port->pid > INT32_MAX)
		in->bad = true;
}

static bool take_ports(struct unpack *in, struct port_list *list)
{
	uint8_t is_cut = unpack_u8(in);
	uint32_t count = unpack_u32(in);

	if (in->bad || is_cut > 1 || count > AGENT_PORTS_MAX)
		return false;
	list->is_cut = is_cut;
	list->ports = mem_new((count + 1) * sizeof(*list->ports));
	for (; list->count < count && !in->bad; list->count++) {
		struct port *port = &list->ports[list->count];

		take_port(in, port);
		if (list->count > 0 && port_compare(port - 1, port) >= 0)
			in->bad = true;
	}
	return unpack_done(in);
}

int port_list_parse(const uint8_t *data, size_t len, struct port_list *ret_list)
{
	struct unpack in = UNPACK_INIT(data, len);
	struct port_list list = {.digest = unpack_u64(&in)};
	uint8_t is_other = unpack_u8(&in);

	if (in.bad || is_other > 1)
		return -EPROTO;
	if (!is_other)
		return unpack_done(&in) ? 0 : -EPROTO;
	if (!take_ports(&in, &list)) {
		port_list_fini(&list);
		return -EPROTO;
	}
	*ret_list = list;
	return 1;
}

/* --- asking --- */

int port_list_ask(struct engine *engine, const char *sandbox_id, const struct agent_link *link,
	uint64_t known_digest, int *ret_fd)
{
	struct buf payload = BUF_INIT(8);
	struct err ignored;
	int r;

	pack_u64(&payload, known_digest);
	r = agent_channel_open(
		engine, sandbox_id, link, AGENT_PORTS, payload.data, payload.len, ret_fd, &ignored);
	buf_fini(&payload);
	return r;
}

/* Whether there is something to be read before its time is over. */
static bool await(int fd, uint64_t until_ms)
{
	uint64_t now_ms = clock_steady_ms();
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return now_ms < until_ms && poll(&ready, 1, (int)(until_ms - now_ms)) > 0;
}

/* Up to the end of the channel, however many pieces it comes in. 0 or -errno; -EAGAIN if that takes too long. */
static int read_answer(int fd, uint64_t until_ms, struct buf *answer)
{
	while (await(fd, until_ms)) {
		uint8_t data[4096];
		ssize_t n = recv(fd, data, sizeof(data), 0);

		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && buf_append(answer, data, (size_t)n) < 0)
			return -EPROTO;
	}
	return -EAGAIN;
}

static int ask_and_read(struct sandbox *sandbox, const struct agent_link *link, uint64_t until_ms,
	struct port_list *ret_list)
{
	auto_(buf_fini) struct buf answer = BUF_INIT(PORT_LIST_ANSWER_MAX);
	auto_fd int fd = -1;
	int r = port_list_ask(sandbox->engine, sandbox->id, link, 0, &fd);

	if (r == 0)
		r = read_answer(fd, until_ms, &answer);
	if (r < 0)
		return r;
	if (answer.len == 0)
		return -ENODATA; /* nobody could be asked */
	r = port_list_parse(answer.data, answer.len, ret_list);
	return r == 0 ? -EPROTO : r;
}

int port_list_read(
	struct sandbox *sandbox, uint64_t timeout_ms, struct port_list *ret_list, struct err *err)
{
	struct agent_link *link = NULL;
	int r = 0;

	pthread_mutex_lock(&sandbox->state);
	if (sandbox->record.status == SANDBOX_PAUSED)
		r = sandbox_verb_check(&sandbox->record, SANDBOX_USE, err);
	else if (sandbox->link && sandbox->greeted)
		link = agent_link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	if (r < 0)
		return r;
	if (!link) {
		*ret_list = (struct port_list){0};
		return 0;
	}
	r = ask_and_read(sandbox, link, clock_steady_ms() + timeout_ms, ret_list);
	agent_link_unref(link);
	if (r == -EPROTO)
		return err_set(err, ERR_INTERNAL, "the sandbox gave a malformed list of ports");
	return r < 0 ? file_channel_broken(r, err) : 0;
}

/* --- what it means --- */

bool port_is_reachable(const struct port *port)
{
	const struct in6_addr *address = &port->address;
	in_addr_t v4;

	if (!IN6_IS_ADDR_V4MAPPED(address))
		return IN6_IS_ADDR_UNSPECIFIED(address) || IN6_IS_ADDR_LOOPBACK(address);
	memcpy(&v4, &address->s6_addr[12], sizeof(v4));
	return v4 == htonl(INADDR_ANY) || v4 == htonl(INADDR_LOOPBACK);
}

json_t *port_to_json(const struct port *port)
{
	bool is_v4 = IN6_IS_ADDR_V4MAPPED(&port->address);
	char address[INET6_ADDRSTRLEN], process[PROCESS_NAME_MAX];

	inet_ntop(is_v4 ? AF_INET : AF_INET6, &port->address.s6_addr[is_v4 ? 12 : 0], address,
		sizeof(address));
	process_name_format(port->process, process);
	return json_pack("{s:s, s:i, s:o, s:s?, s:s?, s:b}", "address", address, "port",
		(int)port->number, "pid", port->pid ? json_integer(port->pid) : json_null(),
		"command", port->pid ? port->command : NULL, "process",
		port->process ? process : NULL, "reachable", port_is_reachable(port));
}
