/* SPDX-License-Identifier: Apache-2.0 */
/* What executions (core/execution/execution.h) are given: the settings of all, and what one is to run and where. */
#pragma once

#include "core/process/process.h"
#include "model/text_map.h"
#include "model/work/execution_record.h"

struct execution;
struct executions;

#define EXECUTION_CODE_MAX	     (1u << 20)
#define EXECUTION_FILES_MAX	     64		       /* of each of the two kinds */
#define EXECUTION_ARGUMENT_MAX	     (128u * 1024 - 1) /* code, event or file of a plain language */
#define EXECUTION_TIMEOUT_DEFAULT_MS 300000

struct executions_config {
	struct store *store;   /* borrowed, as the next */
	struct event_bus *bus; /* "execution.<status>" is published there */
	struct artifact_store *artifacts;
	unsigned history; /* ended ones that are kept of an owner, */
	int64_t keep_ms;  /* for so long */
};

/*
 * Where executions run one after another: a context (core/context/context.h), which knows executions, while these know
 * this much of it.
 */
struct execution_host {
	const struct execution_host_ops *ops;
};

struct execution_host_ops {
	const char *(*id)(const struct execution_host *host);
	struct execution_host *(*ref)(struct execution_host *host);
	void (*unref)(struct execution_host *host);
	/* Has it run when it is its turn; the host holds a reference of it until its end is settled. */
	int (*submit)(struct execution_host *host, struct execution *execution, struct err *err);
	void (*cancel)(struct execution_host *host, struct execution *execution);
	/* Goes on with one that ran there under the daemon before; false if nothing can be known of it. */
	bool (*adopt)(struct execution_host *host, struct execution *execution);
};

/* What is to be run; all is borrowed until execution_start has returned. */
struct execution_spec {
	const char *language;
	struct execution_host *host; /* NULL: it runs in a process of its own */
	const char *code;	     /* exactly one of these two */
	const char *path;	     /* a file in the sandbox */
	const char
		*handler; /* name of the function to be called; NULL: `handler`, if there is one */
	const json_t *event; /* what it is called with; NULL: null */
	const char *cwd;     /* NULL: as of commands */
	struct text_map env;
	/* Files that the runner writes before the code runs: path -> text, path -> base64; NULL: none. */
	const json_t *files, *files_base64;
	const void *input; /* standard input; NULL: none */
	size_t input_len;
	uint64_t timeout_ms; /* 0: the default */
	/* The sandbox is a passing one (sandbox_request.h), for this alone. It is removed when the execution is over, and
	 * its artifacts are copied before. */
	bool is_fresh;
	bool is_told;		  /* the client is told of it before it is over */
	struct execution *queued; /* that it becomes (execution_queue()); NULL: a new one */
	struct process *
		warm; /* of the sandbox: a runner that waits for its request; NULL: one is started */
	const char *function; /* that this is a call of; NULL: none */
	uint32_t version;
	struct function_place
		*place;	   /* among the calls of the function, taken over on success; NULL: none */
	danger_set danger; /* what its code was flagged for */
	json_t *request;   /* what was asked for, to be kept for a retry; NULL: nothing is */
	uint64_t asked_us; /* when, by the steady clock; 0: now */
};
