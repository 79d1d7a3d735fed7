/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doctor found on the host, for a daemon. It looks at everything once, at its start: then it still has the privileges
 * that it was started with, and no threads. What is read in files is looked at again whenever somebody asks, so that a
 * problem that was mended shows; what has to be tried is as it was at the start.
 */
#pragma once

#include "base/err.h"
#include "doctor/host_check.h"

#include <stdint.h>

#define HOST_REPORT_MAX 40

struct host_report {
	struct host host; /* with the privileges of the start */
	int64_t looked_ms;
	struct finding findings[HOST_REPORT_MAX]; /* of each check, in the order of host_checks */
};

/* Looks at everything below a directory, which it keeps open: the host's root. */
int host_report_open(int root_fd, int64_t now_ms, struct host_report **ret_report, struct err *err)
	must_check;

/* NULL is fine. */
void host_report_close(struct host_report *report);

/* What a check finds now. Any thread. */
void host_report_get(const struct host_report *report, size_t check, struct finding *ret);
