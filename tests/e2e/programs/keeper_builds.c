/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests straight to a keeper: six builds alike, after each an order to build ahead in a uid range, and, when standard
 * input ends, their end. Usage: keeper_builds SOCKET SLOT
 */
#include "wire/keeper.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define COUNT	   6
#define SLOT_FIRST 50u

static void send_request(int keeper, enum keeper_kind kind, unsigned n, unsigned slot)
{
	struct keeper_request request = {
		.kind = kind,
		.slot = slot,
		.hostname = "sandbox",
		.limits = {.memory_bytes = 64 << 20,
			.cpu_millis = 1000,
			.pids = 64,
			.disk_bytes = 64 << 20},
	};

	if (kind == KEEPER_CLEAN)
		request.parts = KEEPER_PART_WORKSPACE | KEEPER_PART_LAYER_DIR;
	snprintf(request.id, sizeof(request.id), "%026u", n);
	assert(send(keeper, &request, sizeof(request), 0) == (ssize_t)sizeof(request));
}

static void ask(int keeper, enum keeper_kind kind, unsigned n)
{
	static struct keeper_answer answer;

	send_request(keeper, kind, n, SLOT_FIRST + n);
	assert(recv(keeper, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer));
	assert(answer.result == 0);
}

int main(int argc, char *argv[])
{
	int keeper = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	assert(argc == 3);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	assert(connect(keeper, (struct sockaddr *)&address, sizeof(address)) == 0);
	for (unsigned n = 0; n < COUNT; n++) {
		ask(keeper, KEEPER_BUILD, n);
		send_request(keeper, KEEPER_PREBUILD, n, (unsigned)atoi(argv[2]));
	}
	puts("built");
	fflush(stdout);
	while (getchar() != EOF)
		;
	for (unsigned n = 0; n < COUNT; n++) {
		ask(keeper, KEEPER_KILL, n);
		ask(keeper, KEEPER_CLEAN, n);
	}
	return 0;
}
