/* SPDX-License-Identifier: Apache-2.0 */
#include "container_driver.h"

#include "base/fd.h"
#include "driver/remote/agent_stream.h"
#include "driver/remote/remote_agents.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PORT	   7000
#define PORT_TEXT  "7000"
#define MEET_MS	   60000
#define BOXES_MAX  16
#define USER	   1000
#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)

/* --- the engine --- */

/* A container, by the id of its sandbox; it keeps the secret, as an engine does the environment. */
struct box {
	char id[ID_LEN + 1];
	pid_t pid; /* 0: it does not run */
	bool has_ended;
	int wait_status;
	struct proof_secret secret;
};

static struct {
	char dir[64];
	int agent;
	struct box boxes[BOXES_MAX];
} engine;

static struct box *find_box(const char *id)
{
	for (size_t i = 0; i < array_len(engine.boxes); i++) {
		if (strcmp(engine.boxes[i].id, id) == 0)
			return &engine.boxes[i];
	}
	return NULL;
}

/* Notes the end of a container that ended by itself. */
static bool box_runs(struct box *box)
{
	if (box && box->pid && waitpid(box->pid, &box->wait_status, WNOHANG) == box->pid) {
		box->pid = 0;
		box->has_ended = true;
	}
	return box && box->pid;
}

static void path_of(const char *id, const char *part, char path[160])
{
	snprintf(path, 160, "%s/%s%s%s", engine.dir, id, part[0] ? "/" : "", part);
}

static bool has_files(const char *id)
{
	char path[160];

	path_of(id, "", path);
	return access(path, F_OK) == 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *id, const char *part)
{
	char path[160];

	path_of(id, part, path);
	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* In the child. */
static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	dprintf(STDERR_FILENO, "container: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void make_dir(const char *id, const char *part, uid_t owner)
{
	char path[160];

	path_of(id, part, path);
	must(mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0, path);
	must(chown(path, owner, owner), path);
}

/* The host's files with what the sandbox writes above them, and its workspace. */
static void make_root(const char *id)
{
	static const char *const parts[] = {"", "system", "system/upper", "system/work", "root"};
	char root[160], from[160], options[600];

	for (size_t i = 0; i < array_len(parts); i++)
		make_dir(id, parts[i], 0);
	make_dir(id, "workspace", USER);
	make_dir(id, "workspace/outputs", USER);
	path_of(id, "root", root);
	snprintf(options, sizeof(options),
		"lowerdir=/,upperdir=%s/%s/system/upper,workdir=%s/%s/system/work", engine.dir, id,
		engine.dir, id);
	must(mount("overlay", root, "overlay", 0, options), "overlay");
	make_dir(id, "root/workspace", USER);
	path_of(id, "workspace", from);
	path_of(id, "root/workspace", root);
	must(mount(from, root, NULL, MS_BIND, NULL), "workspace");
	path_of(id, "root/dev", root);
	must(mount("/dev", root, NULL, MS_BIND | MS_REC, NULL), "dev");
	path_of(id, "root/proc", root);
	must(mount("proc", root, "proc", 0, NULL), "proc");
	path_of(id, "root", root);
	must(chdir(root), root);
	must((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
	must(umount2(".", MNT_DETACH), "umount");
	must(chdir("/"), "/");
}

static void bring_up_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(sock, "socket");
	must(ioctl(sock, SIOCSIFFLAGS, &request), "lo");
	close(sock);
}

static _Noreturn void run_box(const struct box *box, const struct driver_spec *spec)
{
	char secret[PROOF_SECRET_TEXT], variable[sizeof(AGENT_SECRET "=") + PROOF_SECRET_TEXT];
	char *argv[] = {(char *)"sandlot-agent", (char *)AGENT_LISTEN, (char *)PORT_TEXT, NULL};
	char *environment[] = {variable, NULL};

	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	must(sethostname(spec->hostname, strlen(spec->hostname)), "sethostname");
	bring_up_loopback();
	make_root(box->id);
	proof_secret_print(&box->secret, secret);
	snprintf(variable, sizeof(variable), AGENT_SECRET "=%s", secret);
	/* Blocked signals are inherited. */
	syscall(SYS_execveat, engine.agent, "", argv, environment, AT_EMPTY_PATH);
	must(-1, "exec of the agent");
	_exit(125);
}

static int start_box(struct box *box, const struct driver_spec *spec)
{
	int r = proof_secret_new(&box->secret);

	if (r < 0)
		return r;
	box->has_ended = false;
	box->pid = (pid_t)syscall(SYS_clone, NAMESPACES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (box->pid == 0)
		run_box(box, spec);
	if (box->pid < 0) {
		box->pid = 0;
		return -errno;
	}
	return 0;
}

static void end_box(struct box *box)
{
	if (!box_runs(box))
		return;
	kill(box->pid, SIGKILL);
	waitpid(box->pid, &box->wait_status, 0);
	box->pid = 0;
}

void container_engine_begin(void)
{
	const char *agent = getenv("SANDLOT_AGENT");

	if (geteuid() != 0)
		fail_msg("not proven: namespaces and mounts need root");
	if (!agent)
		fail_msg("SANDLOT_AGENT names the agent");
	engine.agent = open(agent, O_RDONLY | O_CLOEXEC);
	assert_true(engine.agent >= 0);
	snprintf(engine.dir, sizeof(engine.dir), "/tmp/sandlot-engine-XXXXXX");
	assert_non_null(mkdtemp(engine.dir));
	/* An overlay takes no directories that its own lower layer has. */
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("engine", engine.dir, "tmpfs", 0, "size=256m"), 0);
}

void container_engine_finish(void)
{
	for (size_t i = 0; i < array_len(engine.boxes); i++)
		end_box(&engine.boxes[i]);
	assert_int_equal(umount2(engine.dir, MNT_DETACH), 0);
	assert_int_equal(rmdir(engine.dir), 0);
	close(engine.agent);
}

/* --- the driver --- */

struct container_driver {
	struct driver base;
	struct remote_agents agents;
};

static struct remote_agents *agents_of(struct driver *driver)
{
	return &((struct container_driver *)driver)->agents;
}

/* A socket of the container's network; an engine's address would be dialled instead. */
static int make_socket(pid_t pid, int *ret_sock)
{
	auto_fd int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), its = -1;
	char path[32];
	int sock;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	its = open(path, O_RDONLY | O_CLOEXEC);
	if (own < 0 || its < 0 || setns(its, CLONE_NEWNET) < 0)
		return -errno;
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (setns(own, CLONE_NEWNET) < 0)
		abort();
	*ret_sock = sock;
	return sock < 0 ? -errno : 0;
}

static int connect_to_agent(void *arg, const char *id, uint64_t deadline_ms, int *ret_sock)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct box *box = find_box(id);
	auto_fd int sock = -1;
	int r;

	(void)arg;
	if (!box_runs(box))
		return -ECONNREFUSED;
	r = make_socket(box->pid, &sock);
	if (r == 0)
		r = agent_stream_connect(
			sock, (const struct sockaddr *)&to, sizeof(to), deadline_ms);
	if (r == 0)
		*ret_sock = take_fd(&sock);
	return r;
}

static int refuse(const struct driver_spec *spec, struct err *err)
{
	if (spec->mount_count > 0)
		return err_set(err, ERR_INVALID, "cannot mount %s", spec->mounts[0].source);
	if (box_runs(find_box(spec->id)))
		return err_set(err, ERR_CONFLICT, "%s runs already", spec->id);
	if (spec->has_files && !has_files(spec->id))
		return err_explain(err, ERR_CONFLICT, "workspace_missing", NULL,
			"the workspace of %s is not there", spec->id);
	return 0;
}

static int container_start(struct driver *driver, const struct driver_spec *spec,
	const struct driver_progress *progress, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	int r = refuse(spec, err);
	struct box *box;

	if (r < 0)
		return r;
	box = find_box(spec->id);
	if (!box)
		box = find_box("");
	assert_non_null(box);
	snprintf(box->id, sizeof(box->id), "%s", spec->id);
	driver_report(progress, "starting the container", 0);
	r = start_box(box, spec);
	if (r < 0)
		return err_from(err, r, "start %s", spec->id);
	driver_report(progress, "waiting for its agent", 500);
	*ret_walls = (struct walls){0};
	r = remote_agents_meet(agents_of(driver), spec->id, &box->secret, MEET_MS, ret_link, err);
	if (r < 0)
		end_box(box);
	return r;
}

static int container_adopt(struct driver *driver, const char *id, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct box *box = find_box(id);

	if (!box_runs(box))
		return err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	*ret_walls = (struct walls){0};
	return remote_agents_meet(agents_of(driver), id, &box->secret, MEET_MS, ret_link, err);
}

static int container_open_channel(struct driver *driver, const char *id, uint64_t link_number,
	const void *first, size_t len, int *ret_fd, struct err *err)
{
	return remote_agents_open_channel(
		agents_of(driver), id, link_number, first, len, ret_fd, err);
}

static int container_dial(struct driver *driver, const char *id, uint16_t port, int timeout_ms,
	int *ret_fd, struct err *err)
{
	return remote_agents_dial(agents_of(driver), id, port, timeout_ms, ret_fd, err);
}

static int container_stop(
	struct driver *driver, const char *id, struct driver_end *ret_end, struct err *err)
{
	struct box *box = find_box(id);

	(void)err;
	end_box(box);
	remote_agents_drop(agents_of(driver), id);
	if (ret_end)
		*ret_end = (struct driver_end){
			.ended = box && box->has_ended, .wait_status = box ? box->wait_status : -1};
	if (box)
		box->has_ended = false;
	return 0;
}

static int container_stats(
	struct driver *driver, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	(void)driver;
	if (!box_runs(find_box(id)))
		return err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	*ret_stats = (struct driver_stats){0};
	return 0;
}

static int container_usage(
	struct driver *driver, const char *id, struct driver_usage *ret_usage, struct err *err)
{
	(void)driver;
	(void)id;
	(void)err;
	*ret_usage = (struct driver_usage){0};
	return 0;
}

static int container_clean(struct driver *driver, const char *id, unsigned parts, struct err *err)
{
	(void)driver;
	if (box_runs(find_box(id)))
		return err_set(err, ERR_CONFLICT, "%s runs", id);
	if (parts & DRIVER_PART_SCRATCH)
		remove_tree(id, "workspace/outputs");
	if (parts & (DRIVER_PART_SYSTEM | DRIVER_PART_ALL))
		remove_tree(id, "system");
	if (parts & DRIVER_PART_WORKSPACE)
		remove_tree(id, "workspace");
	if ((parts & DRIVER_PART_ALL) && (parts & DRIVER_PART_WORKSPACE)) {
		remove_tree(id, "");
		if (find_box(id))
			*find_box(id) = (struct box){.id = ""};
	}
	return 0;
}

static int container_list(struct driver *driver, bool stored, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	char last[ID_LEN + 1];
	int count = 0;

	(void)driver;
	(void)err;
	snprintf(last, sizeof(last), "%s", after);
	for (;;) {
		struct box *next = NULL;

		for (size_t i = 0; i < array_len(engine.boxes); i++) {
			struct box *box = &engine.boxes[i];

			if (strcmp(box->id, last) > 0 && (!next || strcmp(box->id, next->id) < 0) &&
				(stored ? has_files(box->id) : box_runs(box)))
				next = box;
		}
		if (!next)
			return count;
		snprintf(last, sizeof(last), "%s", next->id);
		memcpy(ids[count++], next->id, sizeof(next->id));
	}
}

static int container_is_stored(struct driver *driver, const char *id, struct err *err)
{
	(void)driver;
	(void)err;
	return has_files(id);
}

static int container_shutdown(struct driver *driver, struct err *err)
{
	(void)driver;
	(void)err;
	for (size_t i = 0; i < array_len(engine.boxes); i++)
		end_box(&engine.boxes[i]);
	return 0;
}

static void container_close(struct driver *driver)
{
	remote_agents_fini(agents_of(driver));
	free(driver);
}

static const struct driver_ops container_ops = {
	.name = "container",
	.start = container_start,
	.adopt = container_adopt,
	.open_channel = container_open_channel,
	.dial = container_dial,
	.stop = container_stop,
	.stats = container_stats,
	.usage = container_usage,
	.clean = container_clean,
	.list = container_list,
	.is_stored = container_is_stored,
	.shutdown = container_shutdown,
	.close = container_close,
};

struct driver *container_driver_open(void)
{
	struct container_driver *driver = mem_new(sizeof(*driver));

	driver->base =
		(struct driver){.ops = &container_ops, .capabilities = DRIVER_BIT(DRIVER_ADOPT)};
	remote_agents_init(&driver->agents, connect_to_agent, NULL);
	return &driver->base;
}
