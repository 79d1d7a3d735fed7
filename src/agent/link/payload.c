/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/payload.h"

#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <string.h>

static struct unpack payload_of(const struct frame *frame)
{
	return UNPACK_INIT(frame->payload, frame->len);
}

int payload_u32_parse(const struct frame *frame, uint32_t *ret_value)
{
	struct unpack in = payload_of(frame);
	uint32_t value = unpack_u32(&in);

	if (!unpack_done(&in))
		return -EPROTO;
	*ret_value = value;
	return 0;
}

int payload_u64_parse(const struct frame *frame, uint64_t *ret_value)
{
	struct unpack in = payload_of(frame);
	uint64_t value = unpack_u64(&in);

	if (!unpack_done(&in))
		return -EPROTO;
	*ret_value = value;
	return 0;
}

int payload_empty_parse(const struct frame *frame)
{
	return frame->len == 0 ? 0 : -EPROTO;
}

int payload_signal_parse(const struct frame *frame, struct payload_signal *ret_signal)
{
	struct unpack in = payload_of(frame);
	uint32_t number = unpack_u32(&in);
	uint8_t whole_tree = unpack_u8(&in);

	if (!unpack_done(&in) || whole_tree > 1 || number < 1 || number > 64)
		return -EPROTO;
	*ret_signal = (struct payload_signal){.signal = (int)number, .whole_tree = whole_tree};
	return 0;
}

int payload_resize_parse(const struct frame *frame, struct payload_resize *ret_resize)
{
	struct unpack in = payload_of(frame);
	struct payload_resize resize = {.columns = unpack_u16(&in), .rows = unpack_u16(&in)};

	if (!unpack_done(&in))
		return -EPROTO;
	*ret_resize = resize;
	return 0;
}

/* Steps over count strings, adding up the bytes that they take as C strings. */
static void measure(struct unpack *in, uint32_t count, size_t *total)
{
	for (uint32_t i = 0; i < count && !in->bad; i++) {
		size_t len;
		const uint8_t *data = unpack_bytes(in, &len);

		if (memchr(data, 0, len))
			in->bad = true;
		*total += len + 1;
	}
}

/* Copies what measure() accepted to *at, and its pointers to vector. */
static void copy(struct unpack *in, uint32_t count, char **vector, char **at)
{
	for (uint32_t i = 0; i < count; i++) {
		size_t len;
		const uint8_t *data = unpack_bytes(in, &len);

		vector[i] = *at;
		memcpy(*at, data, len);
		(*at)[len] = '\0';
		*at += len + 1;
	}
	if (count > 0)
		vector[count] = NULL;
}

/* cwd, argv, envp and the groups go into one block: one allocation an exec, however long its lists are. */
static int parse_strings(struct unpack *in, struct payload_exec *exec)
{
	struct unpack again = *in;
	uint32_t argc, envc;
	size_t bytes = 0;
	char **pointers;
	char *at;

	measure(in, 1, &bytes);
	argc = unpack_u32(in);
	if (argc < 1 || argc > AGENT_ARGS_MAX)
		return -EPROTO;
	measure(in, argc, &bytes);
	envc = unpack_u32(in);
	if (envc > AGENT_ARGS_MAX)
		return -EPROTO;
	measure(in, envc, &bytes);
	exec->group_count = unpack_u32(in);
	if (exec->group_count > AGENT_GROUPS_MAX)
		return -EPROTO;
	for (uint32_t i = 0; i < exec->group_count; i++)
		(void)unpack_u32(in);
	if (!unpack_done(in))
		return -EPROTO;

	/* The place before argv, argv and envp with their NULLs, and a scratch place for cwd. */
	pointers = mem_new((1 + argc + 1 + envc + 1 + 2) * sizeof(char *) +
			   exec->group_count * sizeof(*exec->groups) + bytes);
	exec->block = pointers;
	exec->argv = pointers + 1;
	exec->envp = exec->argv + argc + 1;
	exec->groups = (uint32_t *)(exec->envp + envc + 3);
	at = (char *)(exec->groups + exec->group_count);
	copy(&again, 1, exec->envp + envc + 1, &at);
	exec->cwd = exec->envp[envc + 1];
	(void)unpack_u32(&again);
	copy(&again, argc, exec->argv, &at);
	(void)unpack_u32(&again);
	copy(&again, envc, exec->envp, &at);
	(void)unpack_u32(&again);
	for (uint32_t i = 0; i < exec->group_count; i++)
		exec->groups[i] = unpack_u32(&again);
	return 0;
}

int payload_exec_parse(const struct frame *frame, struct payload_exec *ret_exec)
{
	struct unpack in = payload_of(frame);
	struct payload_exec exec = {
		.flags = unpack_u32(&in),
		.uid = unpack_u32(&in),
		.gid = unpack_u32(&in),
		.columns = unpack_u16(&in),
		.rows = unpack_u16(&in),
	};
	int r = parse_strings(&in, &exec);

	if (r < 0)
		return r;
	*ret_exec = exec;
	return 0;
}

void payload_exec_fini(struct payload_exec *exec)
{
	free(exec->block);
	*exec = (struct payload_exec){0};
}

/*
 * The arguments of each operation, a letter each: p path, t second path, a cursor, m mode, d depth,
 * l limit, s size, f flag, n names of directories.
 */
static const char *const file_arguments[] = {
	[AGENT_FILE_STAT] = "p",
	[AGENT_FILE_READ] = "p",
	[AGENT_FILE_WRITE] = "pms",
	[AGENT_FILE_LIST] = "pdla",
	[AGENT_FILE_MKDIR] = "pm",
	[AGENT_FILE_MOVE] = "ptf",
	[AGENT_FILE_REMOVE] = "pf",
	[AGENT_FILE_PACK] = "p",
	[AGENT_FILE_UNPACK] = "p",
	[AGENT_FILE_WATCH] = "pf",
	[AGENT_FILE_PREPARE] = "ptan",
};

static void parse_argument(struct unpack *in, char letter, struct payload_file *file)
{
	uint8_t flag;

	switch (letter) {
	case 'p':
		file->path = unpack_str(in, AGENT_PATH_MAX - 1);
		break;
	case 't':
		file->to = unpack_str(in, AGENT_PATH_MAX - 1);
		break;
	case 'a':
		file->after = unpack_str(in, AGENT_PATH_MAX - 1);
		break;
	case 'n':
		file->dirs = unpack_str(in, AGENT_DIRS_MAX);
		break;
	case 'm':
		file->mode = unpack_u32(in);
		break;
	case 'd':
		file->depth = unpack_u32(in);
		break;
	case 'l':
		file->limit = unpack_u32(in);
		break;
	case 's':
		file->size = unpack_u64(in);
		break;
	case 'f':
		flag = unpack_u8(in);
		file->flag = flag;
		if (flag > 1)
			in->bad = true;
		break;
	}
}

int payload_file_parse(const struct frame *frame, struct payload_file *ret_file)
{
	struct unpack in = payload_of(frame);
	struct payload_file file = {.op = unpack_u8(&in)};

	file.user = unpack_u32(&in);
	if (file.op >= array_len(file_arguments) || !file_arguments[file.op])
		return -EPROTO;
	for (const char *letter = file_arguments[file.op]; *letter; letter++)
		parse_argument(&in, *letter, &file);
	if (!unpack_done(&in)) {
		payload_file_fini(&file);
		return -EPROTO;
	}
	*ret_file = file;
	return 0;
}

void payload_file_fini(struct payload_file *file)
{
	free(file->path);
	free(file->to);
	free(file->after);
	free(file->dirs);
	*file = (struct payload_file){0};
}
