/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are given a secret: whatever a client and a server say, each head that the server gets
 * has the secret once, is for the server, and nothing else of what is sent has it. The first two bytes of
 * the input say how much of it is the client's.
 */
#include "egress/secret/secret_proxy.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define VALUE  "the-secret-value"
#define FIELD  "\r\nX-Secret: " VALUE "\r\n"
#define ROUNDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(const char *text, size_t len, const char *part)
{
	size_t found = 0;
	const char *at;

	while ((at = memmem(text, len, part, strlen(part)))) {
		found++;
		len -= (size_t)(at - text) + strlen(part);
		text = at + strlen(part);
	}
	return found;
}

static struct sandbox_egress *make_sandbox_egress(struct secret_cache *secret_cache)
{
	struct egress *egress = mem_new(sizeof(*egress) + sizeof(egress->workers[0]));
	struct sandbox_egress *sandbox_egress = mem_new(sizeof(*sandbox_egress));

	egress->config.secret_cache = secret_cache;
	egress->workers[0].egress = egress;
	sandbox_egress->worker = &egress->workers[0];
	return sandbox_egress;
}

/* Lets both speak and listen until nothing moves; what the server heard. */
static size_t run(struct secret_proxy *secret_proxy, int client, int server, const uint8_t *answer,
	size_t len, char *heard, size_t size)
{
	size_t heard_len = 0;
	bool has_answered = false;

	for (int i = 0; i < ROUNDS; i++) {
		struct secret_proxy_turn turn = {.budget = 1 << 20};
		enum secret_proxy_result result = secret_proxy_move(secret_proxy, &turn);
		char drain[65536];
		ssize_t n;

		while ((n = recv(server, heard + heard_len, size - heard_len, MSG_DONTWAIT)) > 0)
			heard_len += (size_t)n;
		while (recv(client, drain, sizeof(drain), MSG_DONTWAIT) > 0)
			;
		if (result != SECRET_PROXY_WAITS && result != SECRET_PROXY_MORE)
			break;
		if (heard_len > 0 && !has_answered) {
			(void)!send(server, answer, len, MSG_NOSIGNAL | MSG_DONTWAIT);
			shutdown(server, SHUT_WR);
			has_answered = true;
		}
	}
	return heard_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct secret_record record = {.name = "model",
		.url = "http://api.test",
		.header = "X-Secret",
		.is_trusted = true};
	static const struct authority inside = {.name = "model.internal", .port = SECRET_PORT};
	size_t said = size >= 2 ? (size_t)data[0] << 8 | data[1] : 0, heard_len;
	struct secret_cache *secret_cache = secret_cache_new();
	struct sandbox_egress *sandbox_egress = make_sandbox_egress(secret_cache);
	struct secret_server goal;
	struct secret_proxy *secret_proxy;
	int client[2], server[2];
	char *heard;

	if (size < 2 || size > 65536)
		said = size = 0;
	else
		data += 2, size -= 2;
	if (said > size)
		said = size;
	if (secret_server_read(record.url, &goal) < 0)
		abort();
	secret_cache_put(secret_cache, &record, &goal, VALUE);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, client) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, server) < 0)
		abort();
	heard = mem_new(1 << 20);
	secret_proxy = secret_proxy_new(sandbox_egress, &inside,
		secret_cache_find(secret_cache, &sandbox_egress->owner, "model"), NULL, 0);
	if (secret_proxy_connect(secret_proxy, client[1], server[1]) < 0)
		abort();
	(void)!send(client[0], data, said, MSG_NOSIGNAL);
	shutdown(client[0], SHUT_WR);
	heard_len =
		run(secret_proxy, client[0], server[0], data + said, size - said, heard, 1 << 20);
	/* What the client itself sent may look like anything; so it must not know the value. */
	if (!memmem(data, said, VALUE, strlen(VALUE))) {
		assert(count(heard, heard_len, VALUE) == count(heard, heard_len, FIELD));
		assert(heard_len == 0 || count(heard, heard_len, FIELD) >= 1);
		assert(heard_len == 0 || memmem(heard, heard_len, "Host: api.test\r\n", 16));
	}
	secret_proxy_free(secret_proxy);
	assert(sandbox_egress->secret_proxy_count == 0);
	free(heard);
	secret_cache_free(secret_cache);
	free(sandbox_egress->worker->egress);
	free(sandbox_egress);
	for (int i = 0; i < 2; i++) {
		close(client[i]);
		close(server[i]);
	}
	return 0;
}
