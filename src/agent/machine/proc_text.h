/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sandbox has and uses, as text in the format of /proc/meminfo and /proc/stat.
 *
 * The limits and most of the numbers come from the sandbox's own cgroups; what a cgroup does not
 * count is 0. A text has the same length each time, so that it can be replaced in place: a reader
 * in the middle of it finds its lines where they were.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define PROC_TEXT_TEXT_MAX (256u * 1024)

struct proc_text {
	const char *cgroups;  /* "/sys/fs/cgroup" */
	const char *online;   /* "/sys/devices/system/cpu/online" */
	uint64_t total_bytes; /* of memory; 0: what the host has */
	uint64_t boot_s;      /* when the host was booted */
	uint64_t started_us;  /* when the sandbox started, on the steady clock */
};

/* Prepares for the sandbox of the caller. */
void proc_text_init(struct proc_text *proc_text);

void proc_text_put_meminfo(const struct proc_text *proc_text, struct buf *out);
void proc_text_put_stat(const struct proc_text *proc_text, struct buf *out);
