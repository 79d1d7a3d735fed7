/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doctor looks at on the host, one row a check. `sandlot doctor` asks for them itself, sandlotd for GET /v1/doctor.
 *
 * Two kinds: host_check.c and host_cgroup.c read what the kernel and the system say in files, all below
 * one root directory, so that a test can show them another host; host_probe.c tries system calls, some in
 * a child, and changes nothing that lasts.
 */
#pragma once

#include "doctor/finding.h"
#include "doctor/host_file.h"

#include <stdbool.h>
#include <stddef.h>

struct host_check {
	const char *name;
	void (*look)(const struct host *host, struct finding *ret);
	bool is_tried; /* it tries things, some with privileges or in a child: not for a program with threads */
};

extern const struct host_check host_checks[];
extern const size_t host_check_count;

/* The host we are on. */
void host_check_init(struct host *ret, int root_fd);

/* What mends a kernel that lacks something. */
#define HOST_CHECK_UPGRADE "upgrade the kernel (Debian 12 and Ubuntu 24.04 have one that serves)"

/* host_cgroup.c */
void host_cgroup_limits(const struct host *host, struct finding *ret);
void host_cgroup_delegation(const struct host *host, struct finding *ret);
void host_cgroup_kill(const struct host *host, struct finding *ret);

/* host_probe.c */
void host_probe_userns(const struct host *host, struct finding *ret);
void host_probe_nft(const struct host *host, struct finding *ret);
void host_probe_openat2(const struct host *host, struct finding *ret);
void host_probe_clone3(const struct host *host, struct finding *ret);
void host_probe_pidfd(const struct host *host, struct finding *ret);
void host_probe_mount_api(const struct host *host, struct finding *ret);
void host_probe_idmap(const struct host *host, struct finding *ret);
