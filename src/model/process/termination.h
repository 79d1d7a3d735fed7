/* SPDX-License-Identifier: Apache-2.0 */
/* How something ended, a command or a whole sandbox: what the kernel said, and why it came to that. */
#pragma once

#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

enum end_reason {
	END_NONE, /* it has not ended */
	END_EXITED,
	END_SIGNAL,
	END_OOM,
	END_TIMEOUT,
	END_PIDS_LIMIT,
	END_DISK_FULL,
	END_KILLED,
	END_IDLE,
	END_LIFETIME,
	END_MEMORY_PRESSURE,
	END_AGENT_LOST,
	END_OPERATOR,
	END_REASON_COUNT,
};

#define TERMINATION_DENIED_MAX 16
#define TERMINATION_DETAIL_MAX 512 /* room for what the network refused to a name of any length */

/* A system call that the seccomp profile refused. */
struct denied_call {
	uint32_t number; /* as the kernel has it; system_call_name() knows its name */
	uint32_t times;
};

struct termination {
	enum end_reason reason;
	int signal;			     /* 0: none */
	char detail[TERMINATION_DETAIL_MAX]; /* for people; may be empty */
	uint64_t cpu_us;
	uint64_t peak_memory_bytes;
	char profile[16]; /* that refused something; else empty */
	uint32_t denied_count;
	struct denied_call denied[TERMINATION_DENIED_MAX];
};

const char *end_reason_name(enum end_reason reason);
/* As the interface has it; null if it has not ended. */
json_t *termination_to_json(const struct termination *termination);

int end_reason_parse(const char *name, enum end_reason *ret_reason) must_check;
