/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each connection is carried by a process of its own: opening one may take as long as it takes to wake a sandbox,
 * which nobody else is to wait for. They end with the one that listens.
 */
#include "base/fd.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/forward.h"
#include "cli/remote/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORTS_MAX	32
#define OUTPUT_BACKLOG	128
#define CONNECTIONS_MAX 512
#define LACK_MS		200 /* how long to wait for what is lacking to take a connection */

struct forward_values {
	const char *address;
};

static const struct option options[] = {
	{OPTION_TEXT, 0, "address", "ADDRESS", "listen on this address (127.0.0.1)",
		offsetof(struct forward_values, address)},
	{OPTION_END},
};

/* A local port, and the one it leads to. */
struct forwarded_port {
	uint16_t port, local_port;
	int sock;
};

struct forwarder {
	struct client *client;
	char sandbox[RESOLVE_ID_LEN + 1];
	const char *address;
	struct forwarded_port ports[PORTS_MAX];
	size_t count;
	unsigned connections;
	int reap; /* can be read when a connection has ended */
};

static void forwarder_fini(struct forwarder *forwarder)
{
	for (size_t i = 0; i < forwarder->count; i++)
		fd_close(forwarder->ports[i].sock);
	fd_close(forwarder->reap);
}

/* "3000", or "8080:3000" for another local port. */
static int parse_port_pair(const char *text, struct forwarded_port *ret_pair, struct err *err)
{
	const char *colon = strchr(text, ':');
	char local_text[8] = "";
	uint64_t port, local_port;
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (len < sizeof(local_text))
		memcpy(local_text, text, len);
	if (number_parse(colon ? colon + 1 : local_text, 1, UINT16_MAX, &port) < 0 ||
		number_parse(local_text, 0, UINT16_MAX, &local_port) < 0)
		return err_explain(err, ERR_INVALID, "invalid_port",
			"use PORT, or LOCAL:PORT for another local port (0: any that is free)",
			"\"%s\" is no port", text);
	*ret_pair = (struct forwarded_port){(uint16_t)port, (uint16_t)local_port, -1};
	return 0;
}

/* --- listening --- */

static int explain_bind(
	const char *address, const struct forwarded_port *pair, int errnum, struct err *err)
{
	if (errnum == EADDRINUSE || errnum == EACCES) {
		err_set(err, ERR_CONFLICT, "cannot listen on %s port %u: %s", address,
			pair->local_port, strerror(errnum));
		snprintf(err->remedy, sizeof(err->remedy),
			"choose another local port (0:%u takes any that is free)", pair->port);
		return -errnum;
	}
	return err_from(err, -errnum, "listen on %s port %u", address, pair->local_port);
}

static int listen_at(const struct addrinfo *at, const char *address, struct forwarded_port *pair,
	struct err *err)
{
	auto_fd int sock = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	static const int on = 1;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} bound = {0};
	socklen_t len = sizeof(bound);

	if (sock < 0)
		return err_sys(err, "make a socket");
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(sock, at->ai_addr, at->ai_addrlen) < 0 || listen(sock, OUTPUT_BACKLOG) < 0 ||
		getsockname(sock, &bound.any, &len) < 0)
		return explain_bind(address, pair, errno, err);
	pair->local_port =
		ntohs(bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
	pair->sock = take_fd(&sock);
	return 0;
}

static int open_endpoint(const char *address, struct forwarded_port *pair, struct err *err)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM};
	struct addrinfo *at = NULL;
	char service[8];
	int r;

	snprintf(service, sizeof(service), "%u", pair->local_port);
	if (getaddrinfo(address, service, &hints, &at) != 0)
		return err_explain(err, ERR_INVALID, "invalid_address",
			"127.0.0.1 and ::1 are this machine alone, 0.0.0.0 and :: everybody",
			"\"%s\" is no address", address);
	r = listen_at(at, address, pair, err);
	freeaddrinfo(at);
	return r;
}

static int open_ports(struct forwarder *forwarder, char **ports, int count, struct err *err)
{
	int r = 0;

	if (count > PORTS_MAX)
		return err_set(err, ERR_INVALID, "at most %d ports at a time", PORTS_MAX);
	for (int i = 0; i < count && r == 0; i++) {
		struct forwarded_port *pair = &forwarder->ports[i];

		r = parse_port_pair(ports[i], pair, err);
		if (r == 0)
			r = open_endpoint(forwarder->address, pair, err);
		forwarder->count += r == 0;
	}
	return r;
}

static void print_ports(const struct forwarder *forwarder, bool as_json)
{
	json_auto_t *forwards = json_array(), *document;

	for (size_t i = 0; i < forwarder->count; i++) {
		const struct forwarded_port *pair = &forwarder->ports[i];

		if (!as_json)
			printf(strchr(forwarder->address, ':') ? "[%s]:%u -> port %u\n"
							       : "%s:%u -> port %u\n",
				forwarder->address, pair->local_port, pair->port);
		json_array_append_new(forwards,
			json_pack("{s:s, s:i, s:i}", "address", forwarder->address, "local_port",
				(int)pair->local_port, "port", (int)pair->port));
	}
	document = json_pack("{s:O}", "forwards", forwards);
	if (as_json)
		cli_print_json(document);
	fflush(stdout);
}

/* --- connections --- */

/* The child: says in one line what went wrong, and leaves what it shares with its parent alone. */
static _Noreturn void carry(
	const struct forwarder *forwarder, pid_t parent, unsigned port, int sock)
{
	static const int on = 1;
	struct client *client;
	struct err err = {0};
	int r;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	r = client_clone(forwarder->client, &client, &err);
	if (r == 0)
		r = forward_run(client, forwarder->sandbox, port, sock, &err);
	if (r < 0 && r != -ECONNRESET)
		cli_note("port %u: %s%s%s", port, err.message, err.remedy[0] ? "; " : "",
			err.remedy);
	_exit(r < 0);
}

static void take_connection(struct forwarder *forwarder, const struct forwarded_port *pair)
{
	auto_fd int sock = accept4(pair->sock, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid, parent = getpid();

	if (sock < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED)
			poll(NULL, 0, LACK_MS); /* descriptors or memory: they may come back */
		return;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		carry(forwarder, parent, pair->port, take_fd(&sock));
	if (pid < 0)
		cli_note("port %u: %s", pair->port, strerror(errno));
	else
		forwarder->connections++;
}

static int watch_endings(struct forwarder *forwarder, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	forwarder->reap = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return forwarder->reap < 0 ? err_sys(err, "watch for the end of connections") : 0;
}

static void reap_ended(struct forwarder *forwarder)
{
	struct signalfd_siginfo info;

	while (read(forwarder->reap, &info, sizeof(info)) > 0)
		;
	while (forwarder->connections > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		forwarder->connections--;
}

static _Noreturn void serve(struct forwarder *forwarder)
{
	struct pollfd fds[PORTS_MAX + 1];

	for (;;) {
		bool is_full = forwarder->connections >= CONNECTIONS_MAX;

		for (size_t i = 0; i < forwarder->count; i++)
			fds[i] = (struct pollfd){forwarder->ports[i].sock, is_full ? 0 : POLLIN, 0};
		fds[forwarder->count] = (struct pollfd){forwarder->reap, POLLIN, 0};
		poll(fds, forwarder->count + 1, -1);
		reap_ended(forwarder);
		for (size_t i = 0; i < forwarder->count; i++) {
			if (fds[i].revents & POLLIN)
				take_connection(forwarder, &forwarder->ports[i]);
		}
	}
}

/* One that is not there, or somebody else's, is better told of now than with the first connection. */
static int check_sandbox(const struct forwarder *forwarder, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", forwarder->sandbox);

	return client_json(
		forwarder->client, &(struct client_call){.method = "GET", .path = path}, NULL, err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct forward_values *v = values;
	auto_(forwarder_fini) struct forwarder forwarder = {
		.address = v->address ? v->address : "127.0.0.1", .reap = -1};
	int r = cli_connect(cli, &forwarder.client, err);

	if (r == 0)
		r = resolve_id(forwarder.client, argv[0], forwarder.sandbox, err);
	if (r == 0)
		r = check_sandbox(&forwarder, err);
	if (r == 0)
		r = open_ports(&forwarder, argv + 1, argc - 1, err);
	if (r == 0)
		r = watch_endings(&forwarder, err);
	if (r < 0)
		return r;
	print_ports(&forwarder, cli_wants_json(cli));
	serve(&forwarder);
}

const struct command cmd_port_forward = {
	.name = "port-forward",
	.operands = "SANDBOX [LOCAL:]PORT...",
	.summary = "make ports of a sandbox ports of this machine",
	.details =
		"Listens on a local port for each, of the same number unless LOCAL is another (0: "
		"any that\n"
		"is free; which it is is printed). Whatever speaks TCP gets through. The first "
		"connection\n"
		"wakes a stopped sandbox. Ctrl-C ends it, with all connections.\n\n"
		"  sandlot port-forward 01k9 5432\n"
		"  sandlot port-forward 01k9 8080:3000 0:6379\n"
		"  sandlot port-forward --address 0.0.0.0 01k9 3000\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct forward_values),
	.min_operands = 2,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
