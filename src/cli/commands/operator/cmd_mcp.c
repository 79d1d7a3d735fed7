/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot mcp: the door for models (POST /mcp) on standard input and output, for programs that start their servers themselves.
 * A line in is a message, a line out its answer; several may be under way, each on a connection of its own, so that a long
 * command holds nothing up.
 */
#include "cli/command.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LINE_LIMIT (1u << 20) /* as the daemon takes them */
#define AT_ONCE	   16

/* What all messages share. */
struct mcp_bridge {
	struct client *model; /* whose address and token each connection has */
	pthread_mutex_t lock; /* of what follows, and of standard output */
	pthread_cond_t changed;
	unsigned running;
};

struct message {
	struct mcp_bridge *bridge;
	json_t *value;
};

static void print_line(struct mcp_bridge *bridge, const json_t *answer)
{
	auto_free char *line = json_dumps(answer, JSON_COMPACT);

	pthread_mutex_lock(&bridge->lock);
	if (line) {
		printf("%s\n", line);
		fflush(stdout);
	}
	pthread_mutex_unlock(&bridge->lock);
}

static void print_failure(struct mcp_bridge *bridge, const json_t *id, int code, const char *text)
{
	json_auto_t *answer = json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id",
		id ? id : json_null(), "error", "code", code, "message", text);

	print_line(bridge, answer);
}

static void *deliver(void *arg)
{
	auto_free struct message *message = arg;
	struct mcp_bridge *bridge = message->bridge;
	const json_t *id = json_object_get(message->value, "id");
	auto_(client_freep) struct client *client = NULL;
	json_auto_t *answer = NULL;
	struct client_call call = {.method = "POST", .path = "/mcp", .body = message->value};
	struct err err = {0};
	int r = client_clone(bridge->model, &client, &err);

	if (r == 0)
		r = client_json(client, &call, &answer, &err);
	if (answer)
		print_line(bridge, answer);
	else if (r < 0 && id)
		print_failure(bridge, id, -32603, err.message);
	json_decref(message->value);
	pthread_mutex_lock(&bridge->lock);
	bridge->running--;
	pthread_cond_signal(&bridge->changed);
	pthread_mutex_unlock(&bridge->lock);
	return NULL;
}

/* Waits until no more than so many are under way. */
static void wait_for_room(struct mcp_bridge *bridge, unsigned most)
{
	pthread_mutex_lock(&bridge->lock);
	while (bridge->running > most)
		pthread_cond_wait(&bridge->changed, &bridge->lock);
	pthread_mutex_unlock(&bridge->lock);
}

static int start(struct mcp_bridge *bridge, json_t *value, struct err *err)
{
	struct message *message = mem_new(sizeof(*message));
	pthread_t thread;
	int r;

	wait_for_room(bridge, AT_ONCE - 1);
	*message = (struct message){bridge, value};
	pthread_mutex_lock(&bridge->lock);
	bridge->running++;
	pthread_mutex_unlock(&bridge->lock);
	r = pthread_create(&thread, NULL, deliver, message);
	if (r == 0) {
		pthread_detach(thread);
		return 0;
	}
	json_decref(value);
	free(message);
	pthread_mutex_lock(&bridge->lock);
	bridge->running--;
	pthread_mutex_unlock(&bridge->lock);
	return err_from(err, -r, "start a thread");
}

static int pump(struct mcp_bridge *bridge, struct err *err)
{
	auto_free char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int r = 0;

	while (r == 0 && (len = getline(&line, &size, stdin)) > 0) {
		json_t *value;

		if (strspn(line, " \t\r\n") == (size_t)len)
			continue;
		value = len > LINE_LIMIT
				? NULL
				: json_loadb(line, (size_t)len, JSON_REJECT_DUPLICATES, NULL);
		if (value)
			r = start(bridge, value, err);
		else
			print_failure(bridge, NULL, -32700,
				"a line must be one message in JSON, of at most 1 MiB");
	}
	wait_for_room(bridge, 0);
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	struct mcp_bridge bridge = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	int r = cli_connect(cli, &bridge.model, err);

	(void)values, (void)argc, (void)argv;
	return r < 0 ? r : pump(&bridge, err);
}

const struct command cmd_mcp = {
	.name = "mcp",
	.operands = "",
	.summary = "serve models over MCP on standard input and output",
	.details = "For programs that start their MCP servers themselves: configure them to run "
		   "`sandlot mcp`. Those that speak HTTP use the daemon's address with /mcp and a "
		   "token instead.",
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
