/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/build/isolation_check.h"

#include "base/log.h"
#include "base/mem.h"
#include "keeper/build/confine.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const profile_names[KEEPER_PROFILE_COUNT] = {
	[KEEPER_PROFILE_DEFAULT] = "default",
	[KEEPER_PROFILE_BROWSER] = "browser",
	[KEEPER_PROFILE_STRICT] = "strict",
};

/* What every build sets up, or fails. */
static const struct {
	enum wall wall;
	const char *how;
} always[] = {
	{WALL_FILESYSTEM, "overlay"},
	{WALL_NAMESPACES, "cgroup,ipc,mount,network,pid,uts"},
	{WALL_NETWORK, "loopback_only"},
	{WALL_NO_NEW_PRIVS, "set"},
	{WALL_USER_NAMESPACE, "own_uids"},
};

static bool has_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* A kernel without keys has none to hide. */
static bool has_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1) >= 0 ||
	       errno == ENOSYS;
}

/* A child tries this: a limit that was lowered cannot be raised again. */
static bool can_hold_cores(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}) < 0);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

static const char *place_of(const struct cgroup_tree *cgroups, enum cgroup_controller controller)
{
	if (cgroups->missing & (1u << controller))
		return "";
	return cgroups->v1_fd[controller] >= 0 ? "cgroup_v1" : "cgroup_v2";
}

static const char *const disk_names[] = {
	[DISK_NONE] = "", [DISK_IMAGE] = "ext4_image", [DISK_QUOTA] = "project_quota"};

static const struct {
	enum wall wall;
	const char *remedy;
} optional[] = {
	{WALL_CORE_DUMPS, "raise the hard limit of core files of the keeper to 1 or more"},
	{WALL_CPU, "boot with cgroup v2, or mount the v1 hierarchy of cpu"},
	{WALL_DISK,
		"modprobe loop ext4, or mount the file system of the data directory with prjquota, "
		"or start sandlotd with --disk-limits=false"},
	{WALL_KEYRING, "let the keeper use keyctl(2)"},
	{WALL_MEMORY, "boot with cgroup v2, or mount the v1 hierarchy of memory"},
	{WALL_PIDS, "boot with cgroup v2, or mount the v1 hierarchy of pids"},
	{WALL_SECCOMP, "use a kernel with CONFIG_SECCOMP_FILTER=y"},
};

static void put(struct walls *walls, enum wall wall, const char *how)
{
	snprintf(walls->how[wall], WALL_HOW_MAX, "%s", how);
}

static void look(struct walls *walls, const struct isolation_check_host *host)
{
	const struct cgroup_tree *cgroups = host->cgroups;
	bool is_apart = host->is_host && cgroups->v1_fd[CGROUP_MEMORY] >= 0;

	for (size_t i = 0; i < array_len(always); i++)
		put(walls, always[i].wall, always[i].how);
	put(walls, WALL_AGENT, is_apart ? "sealed,own_memory" : "sealed");
	snprintf(walls->how[WALL_CAPABILITIES], WALL_HOW_MAX, "%u_kept", confine_count_caps());
	snprintf(walls->how[WALL_MASKED_PATHS], WALL_HOW_MAX, "%zu_masked", host->mask_count);
	put(walls, WALL_CORE_DUMPS, can_hold_cores() ? "held_off" : "");
	put(walls, WALL_KEYRING, has_keyring() ? "own_session" : "");
	put(walls, WALL_SECCOMP, has_seccomp() ? profile_names[KEEPER_PROFILE_DEFAULT] : "");
	put(walls, WALL_CPU, place_of(cgroups, CGROUP_CPU));
	put(walls, WALL_DISK, disk_names[host->disk_way]);
	put(walls, WALL_MEMORY, place_of(cgroups, CGROUP_MEMORY));
	put(walls, WALL_PIDS, place_of(cgroups, CGROUP_PIDS));
	/* Where the keeper is not root of the host, the user namespace of a sandbox limits it too. */
	if (!host->is_host && !cgroup_tree_has(cgroups, CGROUP_PIDS))
		put(walls, WALL_PIDS, "rlimit");
}

void isolation_check_survey(struct isolation_check *ret_isolation,
	const struct isolation_check_host *host, uint32_t allowed)
{
	struct isolation_check isolation = {0};

	look(&isolation.walls, host);
	for (size_t i = 0; i < array_len(optional); i++) {
		enum wall wall = optional[i].wall;
		struct err *refusal =
			wall == WALL_DISK ? &isolation.disk_refusal : &isolation.refusal;

		if (isolation.walls.how[wall][0])
			continue;
		if (allowed & (1u << wall)) {
			log_warning("sandboxes have no wall %s, as was allowed", wall_name(wall));
			continue;
		}
		(void)!err_explain(refusal, ERR_UNAVAILABLE, "wall_missing", optional[i].remedy,
			"this host cannot give sandboxes the wall %s, and --allow-missing does not "
			"name it",
			wall_name(wall));
		log_error("%s", refusal->message);
	}
	*ret_isolation = isolation;
}

int isolation_check_check(const struct isolation_check *isolation,
	const struct keeper_request *request, struct err *err)
{
	const struct err *refusal = &isolation->refusal;

	if (refusal->kind == ERR_NONE && request->limits.disk_bytes > 0)
		refusal = &isolation->disk_refusal;
	if (refusal->kind == ERR_NONE)
		return 0;
	*err = *refusal;
	return -EAGAIN;
}

void isolation_check_describe(const struct isolation_check *isolation,
	const struct keeper_request *request, enum disk_way disk_way, struct walls *ret_walls)
{
	*ret_walls = isolation->walls;
	if (ret_walls->how[WALL_SECCOMP][0])
		put(ret_walls, WALL_SECCOMP, profile_names[request->profile]);
	put(ret_walls, WALL_DISK, request->limits.disk_bytes == 0 ? "" : disk_names[disk_way]);
}
