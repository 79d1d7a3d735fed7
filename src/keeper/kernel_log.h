/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own record of whom it killed for want of memory: the only place that names the victim.
 *
 * Read on demand, when somebody asks about a sandbox. Of each line only the victim's name, size and uid
 * are taken; the name is the victim's own choice, so it is copied as far as it is plain, and nothing is
 * done with it but to show it. The uid says which sandbox it was.
 */
#pragma once

#include <stdint.h>

#define KERNEL_LOG_VICTIM_MAX 48

/* Opens it at its end; -1 if the host does not let us. */
int kernel_log_open(void);

/* Calls each for every victim since the last time: its uid, and "python3 (61 MiB)". */
void kernel_log_read(int fd,
	void (*each)(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX]), void *arg);

/* One line of it; 0, or -EINVAL if it tells of no victim. */
int kernel_log_parse(const char *line, uint32_t *ret_uid, char victim[KERNEL_LOG_VICTIM_MAX]);
