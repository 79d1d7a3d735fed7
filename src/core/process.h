/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in a sandbox.
 *
 * Its output is handed to a sink as it comes. The sink takes bytes at its own pace: what it has not
 * yet consumed counts against the window, and when that is full the agent stops reading, so the
 * command waits. Its end is reported exactly once, also when the sandbox dies under it.
 */
#pragma once

#include "base/buf.h"
#include "core/sandbox.h"

struct process;

struct process_spec {
	const char *const *argv; /* NULL-terminated */
	const char *const *env;	 /* NULL-terminated, "NAME=value" */
	const char *cwd;
	uint32_t uid, gid;
	const void *input; /* standard input, or NULL for none */
	size_t input_len;
	uint64_t timeout_ms; /* 0: none */
};

enum process_outcome {
	PROCESS_RAN,	 /* it ran and ended */
	PROCESS_BAD_CWD, /* its directory could not be entered: errnum */
	PROCESS_NOT_RUN, /* it could not be executed: errnum */
	PROCESS_REFUSED, /* it could not be set up (limits, say): errnum */
};

struct process_end {
	enum process_outcome outcome;
	int errnum;
	enum end_reason reason;
	int exit_code; /* 128+n for a signal, 124 for a timeout, as in a shell */
	int signal;    /* 0: none */
	uint64_t duration_us;
	uint64_t cpu_us;
	uint64_t peak_memory_bytes;
};

struct process_sink {
	/* It runs, as this pid inside. */
	void (*started)(void *arg, uint32_t pid);
	/* Bytes of stdout (1) or stderr (2). Each must be consumed later, or at once. */
	void (*output)(void *arg, int stream, const uint8_t *data, size_t len);
	/* The end; nothing follows. The sink's reference of the process is dropped after it. */
	void (*ended)(void *arg, const struct process_end *end);
};

/*
 * Makes a process that does not run yet; the sandbox is woken if need be. The sink is called on the
 * reactor's thread and must not block. The caller gets a reference.
 */
int process_new(struct sandbox *sandbox, const struct process_sink *sink, void *arg,
	struct process **ret_process, struct err *err) must_check;

/* Starts it. From here on the sink may be called, also before this returns. If it fails, the sink is
 * not called at all. */
int process_run(struct process *process, const struct process_spec *spec, struct err *err)
	must_check;

void process_unref(struct process *process);

/* The sink has dealt with len bytes. Any thread. */
void process_consumed(struct process *process, size_t len);

/* Kills it with all its children; before process_run, as soon as it runs. */
void process_kill(struct process *process);

/* For link events (sandbox.c): hands a frame to the process it names. */
struct frame;
int process_frame(struct sandbox *sandbox, const struct frame *frame);

/* Ends all processes of a sandbox whose agent is gone. */
void process_end_all(struct sandbox *sandbox, enum end_reason reason);
