/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's log of processes that it killed because memory ran out: only this names the victim.
 *
 * The keeper reads it when the daemon asks about a sandbox. It takes only the victim's name, size
 * and uid of each line; the victim chose its name, so only plain characters of it are copied, and
 * it is only shown. The uid says which sandbox it was in.
 */
#pragma once

#include <stdint.h>

#define KERNEL_LOG_VICTIM_MAX 48

/* Opens the log at its end; -1 if the host does not allow it. */
int kernel_log_open(void);

/* Calls each for every victim since the last time: its uid, and "python3 (61 MiB)". */
void kernel_log_read(int fd,
	void (*each)(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX]), void *arg);

/* Parses one line; 0, or -EINVAL if it names no victim. */
int kernel_log_parse(const char *line, uint32_t *ret_uid, char victim[KERNEL_LOG_VICTIM_MAX]);
