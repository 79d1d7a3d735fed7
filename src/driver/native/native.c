/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/native.h"

#include "base/fd.h"
#include "base/log.h"
#include "driver/native/disk_check.h"
#include "driver/native/keeper_start.h"
#include "driver/native/loopback.h"
#include "driver/native/native_private.h"
#include "wire/agent.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHANNEL_BUFFER (1 << 20)

static_assert(DRIVER_PAGE == KEEPER_LIST_MAX && DRIVER_LAYER_PAGE == KEEPER_DIGESTS_MAX &&
		      DRIVER_LAYER_NAME_LEN == KEEPER_DIGEST_LEN,
	"pages are passed on as they are");
static_assert(ID_LEN == KEEPER_ID_LEN && DRIVER_MEMBERS_MAX == KEEPER_MEMBERS_MAX,
	"ids and numbers are passed on as they are");
static_assert(sizeof(DRIVER_VOLUMES_PLACE) == sizeof("/" KEEPER_VOLUMES_PLACE), "it is one place");

struct keeper_request native_request(enum keeper_kind kind, const char *id)
{
	struct keeper_request request = {.kind = kind};

	snprintf(request.id, sizeof(request.id), "%s", id);
	return request;
}

/* Has made ahead what the next start will probably need. */
static void prepare_next(struct native *native, const struct keeper_request *built,
	uint32_t held_slot, uint32_t next_slot)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX];
	size_t count;

	pthread_mutex_lock(&native->lock);
	count = prebuild_note(&native->prebuild, built, held_slot, next_slot, orders);
	pthread_mutex_unlock(&native->lock);
	keeper_client_order(&native->keeper, orders, count);
}

static const enum keeper_profile profiles[] = {
	[TEMPLATE_PROFILE_DEFAULT] = KEEPER_PROFILE_DEFAULT,
	[TEMPLATE_PROFILE_BROWSER] = KEEPER_PROFILE_BROWSER,
	[TEMPLATE_PROFILE_STRICT] = KEEPER_PROFILE_STRICT,
};

static struct driver_egress_sockets egress_of(const int *fds, const struct keeper_answer *answer)
{
	return (struct driver_egress_sockets){.proxy_fd = fds[KEEPER_EGRESS_PROXY],
		.dns_fd = fds[KEEPER_EGRESS_DNS],
		.dns_stream_fd = fds[KEEPER_EGRESS_DNS_STREAM],
		.is_transparent = answer->is_transparent};
}

/* Sends a request whose answer has a link. */
static int call_for_link(struct native *native, const struct keeper_request *request,
	struct driver_link *ret_link, struct walls *ret_walls, uint32_t *ret_held_slot,
	struct err *err)
{
	int fds[KEEPER_LINK_FD_COUNT + KEEPER_EGRESS_SOCKET_COUNT];
	struct driver_egress_sockets egress;
	struct keeper_answer answer;
	int r = keeper_client_call_with(
		&native->keeper, request, &answer, fds, array_len(fds), err);

	if (r < 0)
		return r;
	egress = egress_of(fds + KEEPER_LINK_FD_COUNT, &answer);
	*ret_link = (struct driver_link){
		fds[0], agent_controls_set(&native->controls, request->id, fds[1], &egress)};
	*ret_walls = answer.walls;
	*ret_held_slot = answer.slot;
	return 0;
}

/* --- the life of a sandbox --- */

/* Takes milliseconds, so there is no progress to report. */
static int native_start(struct driver *driver, const struct driver_spec *spec,
	const struct driver_progress *progress, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_BUILD, spec->id);
	struct native *native = native_from(driver);
	uint32_t held_slot;
	int r;

	(void)progress;
	if (!spec->stack[0] && !template_find(spec->template_name))
		return err_set(err, ERR_INVALID, "there is no template %s", spec->template_name);
	if (spec->mount_count > 0)
		return err_explain(err, ERR_INVALID, "unsupported_by_driver", "leave it out",
			"the driver native cannot mount %s at %s", spec->mounts[0].source,
			spec->mounts[0].place);
	r = spec->joins ? 0 : native_ranges_take(native, spec->id, &request.slot, err);
	if (r < 0)
		return r;
	if (spec->joins)
		snprintf(request.primary, sizeof(request.primary), "%s", spec->joins);
	request.member = spec->member;
	request.has_volumes = spec->has_volumes;
	request.profile = profiles[spec->profile];
	request.leads_out = spec->network == DRIVER_NETWORK_JUDGED;
	request.has_files = spec->has_files;
	request.limits = (struct keeper_limits){.memory_bytes = spec->resources.memory_bytes,
		.cpu_millis = spec->resources.cpu_millis,
		.pids = spec->resources.pids,
		.disk_bytes = native->limits_disk ? spec->resources.disk_bytes : 0};
	snprintf(request.hostname, sizeof(request.hostname), "%s", spec->hostname);
	snprintf(request.stack, sizeof(request.stack), "%s", spec->stack);
	r = call_for_link(native, &request, ret_link, ret_walls, &held_slot, err);
	if (r == 0 && !spec->joins)
		prepare_next(native, &request, held_slot, native_ranges_next(native));
	return r;
}

static int native_adopt(struct driver *driver, const char *id, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_ADOPT, id);
	uint32_t held_slot;

	return call_for_link(native_from(driver), &request, ret_link, ret_walls, &held_slot, err);
}

/*
 * Only peeks at the first message of the keeper's child: the agent receives it, with the descriptor
 * beside it.
 */
static int await_isolated(int sock, struct err *err)
{
	struct err built;
	int r = fd_set_timeout(sock, KEEPER_CLIENT_TIMEOUT_MS);
	ssize_t n;

	if (r < 0)
		return err_from(err, r, "wait for an isolated command");
	n = recv(sock, &built, sizeof(built), MSG_PEEK | MSG_WAITALL);
	if (n != (ssize_t)sizeof(built) || built.kind < ERR_NONE || built.kind >= ERR_KIND_COUNT)
		return err_set(err, ERR_UNAVAILABLE,
			"the sandbox ended while an isolated command was built in it");
	if (built.kind == ERR_NONE)
		return 0;
	built.code[sizeof(built.code) - 1] = '\0';
	built.message[sizeof(built.message) - 1] = '\0';
	built.remedy[sizeof(built.remedy) - 1] = '\0';
	*err = built;
	return -EIO;
}

/* What became of a message to an agent. */
static int explain_control(int r, const char *id, struct err *err)
{
	if (r == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, "sandbox %s does not run", id);
	if (r == -EPIPE || r == -ECONNRESET || r == -ESTALE)
		return err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", id);
	if (r == -EAGAIN || r == -ETOOMANYREFS)
		return err_set(err, ERR_UNAVAILABLE, "the agent of sandbox %s is busy", id);
	return r < 0 ? err_from(err, r, "reach the agent of sandbox %s", id) : 0;
}

static int native_isolated(struct driver *driver, const char *id, uint32_t process, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_ISOLATED_EXEC, id);
	const struct agent_control message = {AGENT_CONTROL_ISOLATED, process};
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	auto_fd int sock = -1;
	int r = keeper_client_call(&native->keeper, &request, &answer, &sock, err);

	if (r == 0)
		r = await_isolated(sock, err);
	if (r < 0)
		return r;
	r = agent_controls_send(&native->controls, id, AGENT_CONTROLS_ANY, &message, sock);
	return explain_control(r, id, err);
}

/*
 * The first frame is there before the agent gets its end: so the agent, which must not wait for
 * anybody, reads it at once.
 */
static int native_open_channel(struct driver *driver, const char *id, uint64_t link_number,
	const void *first, size_t len, int *ret_fd, struct err *err)
{
	const struct agent_control message = {AGENT_CONTROL_CHANNEL, 0};
	auto_fd int ours = -1, theirs = -1;
	int pair[2], size = CHANNEL_BUFFER;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a channel");
	ours = pair[0];
	theirs = pair[1];
	/* Best effort: the host's maximum may be lower. */
	setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	n = send(ours, first, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n != (ssize_t)len)
		return err_set(err, ERR_TOO_LARGE, "a channel begins with at most %u bytes",
			AGENT_CHANNEL_FIRST_MAX);
	n = agent_controls_send(&native_from(driver)->controls, id, link_number, &message, theirs);
	if (n < 0)
		return explain_control((int)n, id, err);
	*ret_fd = take_fd(&ours);
	return 0;
}

static void translate_stats(const struct keeper_stats *from, struct driver_stats *to)
{
	*to = (struct driver_stats){.cpu_us = from->cpu_us,
		.memory_bytes = from->memory_bytes,
		.memory_held_bytes = from->memory_bytes > from->memory_cache_bytes
					     ? from->memory_bytes - from->memory_cache_bytes
					     : 0,
		.memory_peak_bytes = from->memory_peak_bytes,
		.memory_limit_bytes = from->memory_limit_bytes,
		.pids = from->pids,
		.pids_limit = from->pids_limit,
		.oom_kills = from->oom_kills};
	snprintf(to->oom_victim, sizeof(to->oom_victim), "%.*s", (int)sizeof(from->oom_victim) - 1,
		from->oom_victim);
}

static int native_stop(
	struct driver *driver, const char *id, struct driver_end *ret_end, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_KILL, id);
	struct keeper_answer answer;
	struct native *native = native_from(driver);
	int r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);

	if (r == 0)
		agent_controls_drop(&native->controls, id);
	if (r == 0 && ret_end) {
		*ret_end = (struct driver_end){.ended = answer.wait_status >= 0,
			.wait_status = answer.wait_status,
			.cause = answer.err};
		translate_stats(&answer.stats, &ret_end->last);
	}
	return r;
}

static int native_freeze(struct driver *driver, const char *id, bool freeze, struct err *err)
{
	struct keeper_request request = native_request(freeze ? KEEPER_FREEZE : KEEPER_THAW, id);
	struct keeper_answer answer;

	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_stats(
	struct driver *driver, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_STATS, id);
	struct keeper_answer answer;
	int r = keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);

	if (r == 0)
		translate_stats(&answer.stats, ret_stats);
	return r;
}

static int native_usage(
	struct driver *driver, const char *id, struct driver_usage *ret_usage, struct err *err)
{
	struct native *native = native_from(driver);
	struct keeper_request request = native_request(KEEPER_USAGE, id);
	struct keeper_answer answer;
	int r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);

	if (r == 0)
		*ret_usage = (struct driver_usage){.bytes = answer.stats.disk_bytes,
			.files = answer.stats.disk_files,
			.files_limit = native->limits_disk ? answer.stats.disk_files_limit : 0};
	return r;
}

static int native_resize(struct driver *driver, const char *id, uint64_t disk_bytes,
	uint64_t growth_bytes, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_RESIZE, id);
	struct native *native = native_from(driver);
	struct keeper_answer answer;

	/* As it would be built now: an earlier daemon may have built it with a limit. */
	request.limits.disk_bytes = native->limits_disk ? disk_bytes : 0;
	request.growth_bytes = growth_bytes;
	return keeper_client_call(&native->keeper, &request, &answer, NULL, err);
}

static int native_set_limits(struct driver *driver, const char *id,
	const struct resources *resources, bool is_background, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_LIMIT, id);
	struct keeper_answer answer;

	request.limits = (struct keeper_limits){.memory_bytes = resources->memory_bytes,
		.cpu_millis = resources->cpu_millis,
		.pids = resources->pids};
	request.is_background = is_background;
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_set_hostname(
	struct driver *driver, const char *id, const char *hostname, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_RENAME, id);
	struct keeper_answer answer;

	snprintf(request.hostname, sizeof(request.hostname), "%s", hostname);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_clean(struct driver *driver, const char *id, unsigned parts, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_CLEAN, id);
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	uint32_t slot = UID_RANGE_NONE;
	int r = native_ranges_find(native, id, &slot, err);

	if (r < 0)
		return r;
	/* Of one that cannot be looked at any more, the files can be removed all the same. */
	request.slot = slot < KEEPER_SLOT_COUNT ? slot : 0;
	request.parts = ((parts & DRIVER_PART_SYSTEM) ? KEEPER_PART_SYSTEM : 0) |
			((parts & DRIVER_PART_SCRATCH) ? KEEPER_PART_SCRATCH : 0) |
			((parts & DRIVER_PART_ALL) ? KEEPER_PART_LAYER_DIR : 0) |
			((parts & DRIVER_PART_WORKSPACE) ? KEEPER_PART_WORKSPACE : 0);
	r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);
	if (r == 0 && (parts & DRIVER_PART_ALL) && (parts & DRIVER_PART_WORKSPACE))
		native_ranges_release(native, id);
	return r;
}

static int native_is_stored(struct driver *driver, const char *id, struct err *err)
{
	uint32_t ignored;

	return native_ranges_find(native_from(driver), id, &ignored, err);
}

static int native_locate(
	struct driver *driver, const char *id, char ret_text[DRIVER_LOCATION_MAX], struct err *err)
{
	uint32_t slot = UID_RANGE_NONE;
	int r = native_ranges_find(native_from(driver), id, &slot, err);

	if (r < 0)
		return r;
	if (slot >= KEEPER_SLOT_COUNT)
		return err_set(err, ERR_NOT_FOUND, "the files of %s have no uid range", id);
	snprintf(ret_text, DRIVER_LOCATION_MAX, "uid range %u", slot);
	return 0;
}

static int native_check_disk(struct driver *driver, const char *id, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_CHECK, id);
	struct keeper_answer answer;
	auto_fd int image = -1;
	int r = keeper_client_call(&native_from(driver)->keeper, &request, &answer, &image, err);

	if (r < 0 || image < 0)
		return r;
	r = disk_check_run(image, err);
	if (r < 0) {
		err_prefix(err, "the disk of sandbox %s is not in order", id);
		snprintf(err->remedy, sizeof(err->remedy), "%s",
			r == -EEXIST
				? "nothing of it was deleted: mend workspaces/<id>.img of the data "
				  "directory by hand (e2fsck), or purge the sandbox"
				: err->remedy);
	}
	return r;
}

static int native_list(struct driver *driver, bool stored, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct keeper_request request = native_request(KEEPER_LIST, after);
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	int r = stored ? native_ranges_list(native, after, &answer, err)
		       : keeper_client_call(&native->keeper, &request, &answer, NULL, err);

	if (r < 0)
		return r;
	memcpy(ids, answer.ids, sizeof(answer.ids));
	return (int)answer.count;
}

static int native_list_failed(
	struct driver *driver, char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct keeper_request request = {.kind = KEEPER_FAILED};
	struct keeper_answer answer;
	int r = keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);

	if (r < 0)
		return r;
	memcpy(ids, answer.ids, sizeof(answer.ids));
	return (int)answer.count;
}

static int native_open_egress_sockets(struct driver *driver, const char *id,
	struct driver_egress_sockets *ret_sockets, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_EGRESS_SOCKETS, id);
	struct native *native = native_from(driver);
	int fds[KEEPER_EGRESS_SOCKET_COUNT];
	struct keeper_answer answer;
	int r;

	if (agent_controls_take_egress(&native->controls, id, ret_sockets))
		return 0;
	r = keeper_client_call_with(
		&native->keeper, &request, &answer, fds, KEEPER_EGRESS_SOCKET_COUNT, err);
	if (r == 0)
		*ret_sockets = egress_of(fds, &answer);
	return r;
}

static int dial(struct native *native, const char *id, uint16_t port, bool is_v6, int timeout_ms,
	int *ret_fd, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_SOCKET, id);
	struct keeper_answer answer;
	auto_fd int sock = -1;
	int r = keeper_client_call(&native->keeper, &request, &answer, &sock, err);

	if (r < 0)
		return r;
	r = loopback_connect(sock, is_v6, port, timeout_ms);
	if (r < 0)
		return driver_explain_port(id, port, r, err);
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	*ret_fd = take_fd(&sock);
	return 0;
}

/* A socket that was refused by one family connects to none of the other: each try has its own. */
static int native_dial(struct driver *driver, const char *id, uint16_t port, int timeout_ms,
	int *ret_fd, struct err *err)
{
	struct native *native = native_from(driver);
	int r = dial(native, id, port, false, timeout_ms, ret_fd, err);

	/* Development servers often listen on what `localhost` means first, which is IPv6. */
	if (r < 0 && strcmp(err->code, DRIVER_PORT_CLOSED) == 0)
		r = dial(native, id, port, true, timeout_ms, ret_fd, err);
	return r;
}

static int native_check(struct driver *driver, struct err *err)
{
	return keeper_client_check(&native_from(driver)->keeper, err);
}

static int native_gone_fd(struct driver *driver)
{
	return keeper_watch_gone_fd(native_from(driver)->keeper.watch);
}

static int native_shutdown(struct driver *driver, struct err *err)
{
	struct keeper_request request = {.kind = KEEPER_SHUTDOWN};
	struct keeper_answer answer;

	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static void native_close(struct driver *driver)
{
	struct native *native = native_from(driver);

	keeper_client_fini(&native->keeper);
	agent_controls_fini(&native->controls);
	uid_ranges_fini(&native->ranges);
	pthread_mutex_destroy(&native->lock);
	free(native);
}

static const struct driver_ops native_ops = {
	.name = "native",
	.start = native_start,
	.adopt = native_adopt,
	.isolated = native_isolated,
	.open_channel = native_open_channel,
	.stop = native_stop,
	.freeze = native_freeze,
	.stats = native_stats,
	.usage = native_usage,
	.set_limits = native_set_limits,
	.set_hostname = native_set_hostname,
	.resize = native_resize,
	.clean = native_clean,
	.check_disk = native_check_disk,
	.list = native_list,
	.is_stored = native_is_stored,
	.locate = native_locate,
	.list_failed = native_list_failed,
	.open_egress_sockets = native_open_egress_sockets,
	.dial = native_dial,
	.write_layer = native_files_write_layer,
	.commit_layer = native_files_commit_layer,
	.drop_layer = native_files_drop_layer,
	.list_layers = native_files_list_layers,
	.read_tree = native_files_read_tree,
	.read_changes = native_files_read_changes,
	.show_layer = native_files_show_layer,
	.show_project = native_files_show_project,
	.stack_layers = native_files_stack_layers,
	.drop_stack = native_files_drop_stack,
	.take_snapshot = native_files_take_snapshot,
	.load_snapshot = native_files_load_snapshot,
	.drop_snapshot = native_files_drop_snapshot,
	.list_snapshots = native_files_list_snapshots,
	.check = native_check,
	.gone_fd = native_gone_fd,
	.shutdown = native_shutdown,
	.close = native_close,
};

static int say_hello(struct native *native, struct err *err)
{
	struct keeper_request request = {.kind = KEEPER_HELLO};
	struct keeper_answer answer = {0};
	int r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);

	if (r < 0 && answer.result < 0) {
		/* The keeper does not recover from this and exits. */
		err_prefix(err, "the keeper cannot start");
		snprintf(err->code, sizeof(err->code), DRIVER_CANNOT_START);
	}
	if (r == 0 && answer.version != KEEPER_VERSION)
		r = err_explain(err, ERR_UNAVAILABLE, DRIVER_OTHER_VERSION,
			"end the old one with `sandlot shutdown`, then start again",
			"the running keeper speaks version %u, not %u", answer.version,
			KEEPER_VERSION);
	/* The rest is for keepers of our version. */
	if (r == 0) {
		request.log_least = log_least() + 1;
		r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);
	}
	if (r == 0) {
		request = prebuild_spares(native->limits_disk);
		r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);
	}
	return r;
}

int native_end(const struct driver_config *config, struct err *err)
{
	const struct keeper_request request = {.kind = KEEPER_SHUTDOWN};
	struct keeper_answer answer;
	struct keeper_client keeper;
	char path[KEEPER_START_SOCKET_MAX];
	int r = keeper_start_socket(config, path, err);

	if (r < 0)
		return r;
	r = keeper_client_init(&keeper, path);
	if (r < 0)
		return err_from(err, r, "keeper socket %s", path);
	r = keeper_client_call(&keeper, &request, &answer, NULL, err);
	keeper_client_fini(&keeper);
	return r;
}

int native_open(const struct driver_config *config, struct driver **ret_driver, struct err *err)
{
	char path[KEEPER_START_SOCKET_MAX];
	struct native *native;
	int r = keeper_start_socket(config, path, err);

	if (r < 0)
		return r;
	native = mem_new(sizeof(*native));
	native->base = (struct driver){.ops = &native_ops, .capabilities = NATIVE_CAPABILITIES};
	native->limits_disk = config->limits_disk;
	/* An ordinary user has few, and may need the very last. */
	uid_ranges_init(&native->ranges, !config->is_rootless);
	agent_controls_init(&native->controls);
	pthread_mutex_init(&native->lock, NULL);
	r = keeper_client_init(&native->keeper, path);
	if (r < 0)
		r = err_from(err, r, "keeper socket %s", path);
	else
		r = say_hello(native, err);
	if (r == 0)
		r = keeper_client_watch(&native->keeper, config->patience_ms, err);
	if (r < 0) {
		native_close(&native->base);
		return r;
	}
	*ret_driver = &native->base;
	return 0;
}
