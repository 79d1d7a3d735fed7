/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are given a secret: whatever a client and a server say, each head that the server gets
 * has the secret once, is for the server, and nothing else of what is sent has it. The first two bytes of
 * the input say how much of it is the client's.
 */
#include "egress/errand.h"

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

static struct sluice *make_sluice(struct vault *vault)
{
	struct egress *egress = mem_new(sizeof(*egress) + sizeof(egress->stations[0]));
	struct sluice *sluice = mem_new(sizeof(*sluice));

	egress->config.vault = vault;
	egress->stations[0].egress = egress;
	sluice->station = &egress->stations[0];
	return sluice;
}

/* Lets both speak and listen until nothing moves; what the server heard. */
static size_t run(struct errand *errand, int client, int server, const uint8_t *answer, size_t len,
	char *heard, size_t size)
{
	size_t heard_len = 0;
	bool has_answered = false;

	for (int i = 0; i < ROUNDS; i++) {
		struct errand_turn turn = {.budget = 1 << 20};
		enum errand_result result = errand_move(errand, &turn);
		char drain[65536];
		ssize_t n;

		while ((n = recv(server, heard + heard_len, size - heard_len, MSG_DONTWAIT)) > 0)
			heard_len += (size_t)n;
		while (recv(client, drain, sizeof(drain), MSG_DONTWAIT) > 0)
			;
		if (result != ERRAND_WAITS && result != ERRAND_MORE)
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
	struct vault *vault = vault_new();
	struct sluice *sluice = make_sluice(vault);
	struct secret_server goal;
	struct errand *errand;
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
	vault_put(vault, &record, &goal, VALUE);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, client) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, server) < 0)
		abort();
	heard = mem_new(1 << 20);
	errand = errand_new(sluice, &inside, vault_find(vault, &sluice->owner, "model"), NULL, 0);
	if (errand_connect(errand, client[1], server[1]) < 0)
		abort();
	(void)!send(client[0], data, said, MSG_NOSIGNAL);
	shutdown(client[0], SHUT_WR);
	heard_len = run(errand, client[0], server[0], data + said, size - said, heard, 1 << 20);
	/* What the client itself sent may look like anything; so it must not know the value. */
	if (!memmem(data, said, VALUE, strlen(VALUE))) {
		assert(count(heard, heard_len, VALUE) == count(heard, heard_len, FIELD));
		assert(heard_len == 0 || count(heard, heard_len, FIELD) >= 1);
		assert(heard_len == 0 || memmem(heard, heard_len, "Host: api.test\r\n", 16));
	}
	errand_free(errand);
	assert(sluice->errand_count == 0);
	free(heard);
	vault_free(vault);
	free(sluice->station->egress);
	free(sluice);
	for (int i = 0; i < 2; i++) {
		close(client[i]);
		close(server[i]);
	}
	return 0;
}
