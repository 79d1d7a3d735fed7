/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a link, as the agent takes them apart: frames, and the payload of each kind.
 *
 * Built by `make fuzz` with clang -fsanitize=fuzzer; otherwise with idempotency.c, which runs the files
 * and directories named as arguments, so that the corpus is an ordinary test.
 */
#include "agent/link/payload.h"
#include "wire/agent.h"
#include "wire/frame.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every pointer is there, and every string ends within the block. */
static void check_exec(const struct frame *frame)
{
	struct payload_exec exec;
	size_t total = 0;

	if (payload_exec_parse(frame, &exec) < 0)
		return;
	assert(exec.argv[0] && exec.cwd);
	for (char **arg = exec.argv; *arg; arg++)
		total += strlen(*arg);
	for (char **env = exec.envp; *env; env++)
		total += strlen(*env);
	assert(total + strlen(exec.cwd) < frame->len);
	exec.argv[-1] = NULL; /* the place for the shell is really there */
	payload_exec_fini(&exec);
}

static void check_file(const struct frame *frame)
{
	struct payload_file file;

	if (payload_file_parse(frame, &file) < 0)
		return;
	assert(file.path && strlen(file.path) < AGENT_PATH_MAX);
	assert(file.op != AGENT_FILE_MOVE || strlen(file.to) < AGENT_PATH_MAX);
	assert(file.op != AGENT_FILE_LIST || strlen(file.after) < AGENT_PATH_MAX);
	payload_file_fini(&file);
}

static void check_signal(const struct frame *frame)
{
	struct payload_signal signal;

	if (payload_signal_parse(frame, &signal) == 0)
		assert(signal.signal >= 1 && signal.signal <= 64);
}

static void check_resize(const struct frame *frame)
{
	struct payload_resize resize;

	assert((payload_resize_parse(frame, &resize) == 0) == (frame->len == 4));
}

static void check_numbers(const struct frame *frame)
{
	uint32_t small;
	uint64_t large;

	assert((payload_u32_parse(frame, &small) == 0) == (frame->len == 4));
	assert((payload_u64_parse(frame, &large) == 0) == (frame->len == 8));
	assert((payload_empty_parse(frame) == 0) == (frame->len == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its own for each frame, so that a read past its end is seen. */
	while (size > 0) {
		struct frame frame;
		uint8_t *payload;
		int n = frame_next(data, size, AGENT_DOWN_MAX, &frame);

		if (n <= 0)
			break;
		assert((size_t)n == FRAME_HEADER_LEN + frame.len && (size_t)n <= size);
		payload = mem_new(frame.len ? frame.len : 1);
		memcpy(payload, frame.payload, frame.len);
		frame.payload = payload;
		check_exec(&frame);
		check_file(&frame);
		check_signal(&frame);
		check_resize(&frame);
		check_numbers(&frame);
		free(payload);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}
