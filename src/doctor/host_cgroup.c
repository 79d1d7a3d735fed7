/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of control groups: where they are mounted, which controllers they have, whose they are. */
#include "base/format.h"
#include "base/mem.h"
#include "doctor/host_check.h"
#include "doctor/host_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a hierarchy is mounted, relative to the root directory: of that type, with an option unless that is NULL. */
static bool find_mount(
	const struct host *host, const char *type, const char *option, char *ret_where, size_t size)
{
	char mounts[65536];
	char *line = mounts;

	if (!host_file_read(host, "proc/self/mounts", mounts, sizeof(mounts)))
		return false;
	while (line) {
		char *next = strchr(line, '\n');
		char where[256], its_type[64], options[256];

		if (next)
			*next++ = '\0';
		if (sscanf(line, "%*s %255s %63s %255s", where, its_type, options) == 3 &&
			strcmp(its_type, type) == 0 && where[0] == '/' &&
			(!option || host_file_has_word(options, option))) {
			snprintf(ret_where, size, "%s", where + 1);
			return true;
		}
		line = next;
	}
	return false;
}

static bool find_cgroup2(const struct host *host, char *ret_where, size_t size)
{
	return find_mount(host, "cgroup2", NULL, ret_where, size);
}

static bool has_v1_controller(const struct host *host, const char *name)
{
	char where[256];

	return find_mount(host, "cgroup", name, where, sizeof(where));
}

void host_cgroup_limits(const struct host *host, struct finding *f)
{
	static const char *const needed[] = {"memory", "cpu", "pids"};
	char where[256];
	char path[300];
	char v2[1024] = "";
	char fact[256] = "";
	char missing[64] = "";
	size_t len = 0;

	if (find_cgroup2(host, where, sizeof(where))) {
		snprintf(path, sizeof(path), "%s/cgroup.controllers", where);
		if (!host_file_read(host, path, v2, sizeof(v2)))
			v2[0] = '\0';
	}
	for (size_t i = 0; i < array_len(needed); i++) {
		const char *on = host_file_has_word(v2, needed[i])    ? "v2"
				 : has_v1_controller(host, needed[i]) ? "v1"
								      : NULL;

		if (on)
			len = format_append(fact, sizeof(fact), len, "%s%s on %s", len ? ", " : "",
				needed[i], on);
		else if (!missing[0])
			snprintf(missing, sizeof(missing), "%s", needed[i]);
	}
	if (!missing[0])
		finding_ok(f, "%s", fact);
	else
		finding_problem(f, host->is_root ? FINDING_FAIL : FINDING_WARN,
			"without it nothing keeps a sandbox from taking all of the machine",
			"boot with systemd.unified_cgroup_hierarchy=1", "no %s controller",
			missing);
}

/* Whether the group that this user's daemon would be started in belongs to the user. */
void host_cgroup_delegation(const struct host *host, struct finding *f)
{
	char text[4096], where[256], path[PATH_MAX];
	const char *own = host_file_read(host, "proc/self/cgroup", text, sizeof(text));

	own = own ? strstr(own, "0::/") : NULL; /* the last line, of v2 */
	if (host->is_root) {
		finding_ok(f, "not needed by root");
		return;
	}
	if (own && find_cgroup2(host, where, sizeof(where))) {
		snprintf(path, sizeof(path), "%s%s/cgroup.procs", where, own + strlen("0::"));
		if (faccessat(host->root_fd, path, W_OK, AT_EACCESS) == 0) {
			finding_ok(f, "this group is the user's own");
			return;
		}
	}
	finding_problem(f, FINDING_WARN,
		"without a cgroup of the user's own, memory and processor of sandboxes are not "
		"limited, and pause is refused",
		"systemd-run --user --scope -p Delegate=yes sandlotd",
		"no cgroup is delegated to this user here");
}

/* The root cgroup has neither file, so a child has to be looked at: ours, or one made for it. */
void host_cgroup_kill(const struct host *host, struct finding *f)
{
	char where[256];
	char probe[300];
	char path[340];
	bool made;
	bool has_kill;
	bool has_freeze;

	if (!find_cgroup2(host, where, sizeof(where))) {
		finding_problem(f, FINDING_WARN,
			"cgroup.kill ends a whole sandbox at once, cgroup.freeze pauses it",
			"sudo mkdir -p /sys/fs/cgroup/unified && sudo mount -t cgroup2 none "
			"/sys/fs/cgroup/unified",
			"cgroup v2 is not mounted");
		return;
	}
	snprintf(probe, sizeof(probe), "%s/sandlot-doctor-%d", where, (int)getpid());
	made = mkdirat(host->root_fd, probe, 0755) == 0;
	if (!made) {
		finding_problem(f, FINDING_WARN,
			"cgroup.kill ends a whole sandbox at once, cgroup.freeze pauses it",
			"sudo sandlot doctor",
			"not proven: cgroup v2 at /%s is not writable for us", where);
		return;
	}
	snprintf(path, sizeof(path), "%s/cgroup.kill", probe);
	has_kill = faccessat(host->root_fd, path, F_OK, 0) == 0;
	snprintf(path, sizeof(path), "%s/cgroup.freeze", probe);
	has_freeze = faccessat(host->root_fd, path, F_OK, 0) == 0;
	unlinkat(host->root_fd, probe, AT_REMOVEDIR);
	if (has_kill && has_freeze)
		finding_ok(f, "cgroup.kill and cgroup.freeze at /%s", where);
	else
		finding_problem(f, FINDING_FAIL,
			"cgroup.kill ends a whole sandbox at once, cgroup.freeze pauses it",
			HOST_CHECK_UPGRADE, "no cgroup.%s", has_kill ? "freeze" : "kill");
}
