/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the payloads of the frames that the daemon sends. The parsers act on nothing, so all of
 * them can be fuzzed. Each returns 0, or -EPROTO for a payload that is not exactly what
 * wire/agent.h says; the caller then closes the link.
 */
#pragma once

#include "base/mem.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct payload_exec {
	uint32_t flags;
	uint32_t uid;
	uint32_t gid;
	uint16_t columns;
	uint16_t rows;
	char *cwd;
	char **argv; /* at least one; a free place lies before it, for "/bin/sh" */
	char **envp;
	uint32_t *groups; /* that it is in besides gid */
	uint32_t group_count;
	void *block; /* what all of the above points into */
};

int payload_exec_parse(const struct frame *frame, struct payload_exec *ret_exec) must_check;
void payload_exec_fini(struct payload_exec *exec);

struct payload_signal {
	int signal;
	bool whole_tree;
};

int payload_signal_parse(const struct frame *frame, struct payload_signal *ret_signal) must_check;

struct payload_resize {
	uint16_t columns;
	uint16_t rows;
};

int payload_resize_parse(const struct frame *frame, struct payload_resize *ret_resize) must_check;

/* AGENT_ATTACH, AGENT_SHUTDOWN; AGENT_ACK, AGENT_PORTS; AGENT_STDIN_CLOSE, AGENT_FORGET. */
int payload_u32_parse(const struct frame *frame, uint32_t *ret_value) must_check;
int payload_u64_parse(const struct frame *frame, uint64_t *ret_value) must_check;
int payload_empty_parse(const struct frame *frame) must_check;

/* AGENT_FILE; what an operation does not have is NULL or 0. */
struct payload_file {
	uint8_t op;    /* enum agent_file_op */
	uint32_t user; /* whom commands run as, see path_owner() */
	char *path;
	char *to;    /* MOVE; PREPARE: the user */
	char *after; /* LIST; PREPARE: the skeleton */
	char *dirs;  /* PREPARE */
	uint32_t mode;
	uint32_t depth;
	uint32_t limit;
	uint64_t size;
	bool flag; /* MOVE: replace; REMOVE, WATCH: recursive */
};

int payload_file_parse(const struct frame *frame, struct payload_file *ret_file) must_check;
void payload_file_fini(struct payload_file *file);
