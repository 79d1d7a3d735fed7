/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/native.h"

#include "base/fd.h"
#include "base/log.h"
#include "driver/native/agent_controls.h"
#include "driver/native/disk_check.h"
#include "driver/native/keeper_client.h"
#include "driver/native/keeper_start.h"
#include "driver/native/loopback.h"
#include "driver/native/prebuild.h"
#include "driver/native/uid_ranges.h"
#include "wire/agent.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
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

struct native {
	struct driver base;
	bool limits_disk;
	struct keeper_client keeper;
	struct agent_controls controls;
	pthread_mutex_t lock; /* what follows */
	struct prebuild prebuild;
	struct uid_ranges ranges;
	bool knows_ranges;	      /* of all sandboxes that had files when it was opened */
	char noted_until[ID_LEN + 1]; /* else of those up to this id */
};

static struct native *native_from(struct driver *driver)
{
	return (struct native *)driver;
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

static struct keeper_request request_for(enum keeper_kind kind, const char *id)
{
	struct keeper_request request = {.kind = kind};

	snprintf(request.id, sizeof(request.id), "%s", id);
	return request;
}

static const enum keeper_profile profiles[] = {
	[TEMPLATE_PROFILE_DEFAULT] = KEEPER_PROFILE_DEFAULT,
	[TEMPLATE_PROFILE_BROWSER] = KEEPER_PROFILE_BROWSER,
	[TEMPLATE_PROFILE_STRICT] = KEEPER_PROFILE_STRICT,
};

/* Sends a request whose answer has a link. */
static int call_for_link(struct native *native, const struct keeper_request *request,
	struct driver_link *ret_link, struct walls *ret_walls, uint32_t *ret_held_slot,
	struct err *err)
{
	struct keeper_answer answer;
	int fds[2], r = keeper_client_call_with(&native->keeper, request, &answer, fds, 2, err);

	if (r < 0)
		return r;
	*ret_link = (struct driver_link){
		fds[0], agent_controls_set(&native->controls, request->id, fds[1])};
	*ret_walls = answer.walls;
	*ret_held_slot = answer.slot;
	return 0;
}

/* --- uid ranges --- */

/* Asks the files themselves, which may have to be mounted. */
static int ask_range(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_OWNER, id);
	struct keeper_answer answer;
	int r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);

	if (r == 0)
		*ret_slot = answer.slot < KEEPER_SLOT_COUNT ? answer.slot : UID_RANGE_NONE;
	return r;
}

static int note_range(struct native *native, const char *id, uint32_t slot, struct err *err)
{
	int r;

	pthread_mutex_lock(&native->lock);
	r = uid_ranges_note(&native->ranges, id, slot);
	pthread_mutex_unlock(&native->lock);
	if (r == -EEXIST)
		return err_explain(err, ERR_CONFLICT, "uid_range_taken",
			"purge the other one, if it is not needed",
			"the files of %s belong to uid range %u, which is another sandbox's", id,
			slot);
	return r;
}

/* What one page of the list said of uid ranges. */
static void note_page(struct native *native, const struct keeper_answer *page)
{
	for (uint32_t i = 0; i < page->count; i++) {
		const char *id = page->ids[i];
		uint32_t slot = page->slots[i];
		struct err err;
		int r = 0;

		if (slot == KEEPER_SLOT_UNKNOWN)
			r = ask_range(native, id, &slot, &err);
		if (r == 0)
			r = note_range(native, id, slot, &err);
		if (r == 0)
			continue;
		log_warning("the uid range of %s is not known: %s", id, err.message);
		(void)!note_range(native, id, UID_RANGE_UNKNOWN, &err);
	}
}

/*
 * One page of what is on disk. The first who goes through all pages, which is the start of the
 * daemon as a rule, learns all uid ranges with them.
 */
static int list_stored(
	struct native *native, const char *after, struct keeper_answer *answer, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_STORED, after);
	bool is_next;
	int r = keeper_client_call(&native->keeper, &request, answer, NULL, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&native->lock);
	is_next = !native->knows_ranges && strcmp(after, native->noted_until) == 0;
	pthread_mutex_unlock(&native->lock);
	if (!is_next)
		return 0;
	note_page(native, answer);
	pthread_mutex_lock(&native->lock);
	if (answer->count == KEEPER_LIST_MAX)
		memcpy(native->noted_until, answer->ids[answer->count - 1],
			sizeof(native->noted_until));
	else
		native->knows_ranges = true;
	pthread_mutex_unlock(&native->lock);
	return 0;
}

/* Before the first range is given out: which ones do files on disk have? */
static int learn_ranges(struct native *native, struct err *err)
{
	struct keeper_answer answer;
	char after[ID_LEN + 1];
	bool is_known;
	int r = 0;

	do {
		pthread_mutex_lock(&native->lock);
		is_known = native->knows_ranges;
		memcpy(after, native->noted_until, sizeof(after));
		pthread_mutex_unlock(&native->lock);
		if (!is_known)
			r = list_stored(native, after, &answer, err);
	} while (r == 0 && !is_known);
	return r;
}

/* Whether a sandbox has files: 1 with its range, 0, or -errno. */
static int find_range(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
{
	int r = learn_ranges(native, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&native->lock);
	r = uid_ranges_find(&native->ranges, id, ret_slot);
	pthread_mutex_unlock(&native->lock);
	return r;
}

/* The range of a sandbox that is to start: that of its files, or a new one. */
static int take_range(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
{
	uint32_t slot = UID_RANGE_NONE;
	int r = find_range(native, id, &slot, err);

	if (r > 0 && slot == UID_RANGE_UNKNOWN) {
		r = ask_range(native, id, &slot, err);
		if (r == 0)
			r = note_range(native, id, slot, err);
	}
	if (r < 0)
		return r;
	if (slot == UID_RANGE_NONE) {
		pthread_mutex_lock(&native->lock);
		r = uid_ranges_take(&native->ranges, id, &slot);
		pthread_mutex_unlock(&native->lock);
	}
	if (r == -ENOSPC)
		return err_explain(err, ERR_UNAVAILABLE, "no_uid_range",
			"purge sandboxes that are not needed",
			"all %d uid ranges are taken by sandboxes and kept workspaces",
			KEEPER_SLOT_COUNT);
	*ret_slot = slot;
	return 0;
}

static uint32_t next_range(struct native *native)
{
	uint32_t slot;

	pthread_mutex_lock(&native->lock);
	slot = uid_ranges_next(&native->ranges);
	pthread_mutex_unlock(&native->lock);
	return slot;
}

/* --- the life of a sandbox --- */

/* Takes milliseconds, so there is no progress to report. */
static int native_start(struct driver *driver, const struct driver_spec *spec,
	const struct driver_progress *progress, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_BUILD, spec->id);
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
	r = spec->joins ? 0 : take_range(native, spec->id, &request.slot, err);
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
		prepare_next(native, &request, held_slot, next_range(native));
	return r;
}

static int native_adopt(struct driver *driver, const char *id, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_ADOPT, id);
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
	struct keeper_request request = request_for(KEEPER_ISOLATED_EXEC, id);
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
	struct keeper_request request = request_for(KEEPER_KILL, id);
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
	struct keeper_request request = request_for(freeze ? KEEPER_FREEZE : KEEPER_THAW, id);
	struct keeper_answer answer;

	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_stats(
	struct driver *driver, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_STATS, id);
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
	struct keeper_request request = request_for(KEEPER_USAGE, id);
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
	struct keeper_request request = request_for(KEEPER_RESIZE, id);
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
	struct keeper_request request = request_for(KEEPER_LIMIT, id);
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
	struct keeper_request request = request_for(KEEPER_RENAME, id);
	struct keeper_answer answer;

	snprintf(request.hostname, sizeof(request.hostname), "%s", hostname);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_clean(struct driver *driver, const char *id, unsigned parts, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_CLEAN, id);
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	uint32_t slot = UID_RANGE_NONE;
	int r = find_range(native, id, &slot, err);

	if (r < 0)
		return r;
	/* Of one that cannot be looked at any more, the files can be removed all the same. */
	request.slot = slot < KEEPER_SLOT_COUNT ? slot : 0;
	request.parts = ((parts & DRIVER_PART_SYSTEM) ? KEEPER_PART_SYSTEM : 0) |
			((parts & DRIVER_PART_SCRATCH) ? KEEPER_PART_SCRATCH : 0) |
			((parts & DRIVER_PART_ALL) ? KEEPER_PART_LAYER_DIR : 0) |
			((parts & DRIVER_PART_WORKSPACE) ? KEEPER_PART_WORKSPACE : 0);
	r = keeper_client_call(&native->keeper, &request, &answer, NULL, err);
	if (r == 0 && (parts & DRIVER_PART_ALL) && (parts & DRIVER_PART_WORKSPACE)) {
		pthread_mutex_lock(&native->lock);
		uid_ranges_release(&native->ranges, id);
		pthread_mutex_unlock(&native->lock);
	}
	return r;
}

static int native_is_stored(struct driver *driver, const char *id, struct err *err)
{
	uint32_t ignored;

	return find_range(native_from(driver), id, &ignored, err);
}

static int native_locate(
	struct driver *driver, const char *id, char ret_text[DRIVER_LOCATION_MAX], struct err *err)
{
	uint32_t slot = UID_RANGE_NONE;
	int r = find_range(native_from(driver), id, &slot, err);

	if (r < 0)
		return r;
	if (slot >= KEEPER_SLOT_COUNT)
		return err_set(err, ERR_NOT_FOUND, "the files of %s have no uid range", id);
	snprintf(ret_text, DRIVER_LOCATION_MAX, "uid range %u", slot);
	return 0;
}

static int native_check_disk(struct driver *driver, const char *id, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_CHECK, id);
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
	struct keeper_request request = request_for(KEEPER_LIST, after);
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	int r = stored ? list_stored(native, after, &answer, err)
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
	struct keeper_request request = request_for(KEEPER_EGRESS_SOCKETS, id);
	struct keeper_answer answer;
	int fds[KEEPER_EGRESS_SOCKET_COUNT];
	int r = keeper_client_call_with(&native_from(driver)->keeper, &request, &answer, fds,
		KEEPER_EGRESS_SOCKET_COUNT, err);

	if (r == 0)
		*ret_sockets = (struct driver_egress_sockets){.proxy_fd = fds[KEEPER_EGRESS_PROXY],
			.dns_fd = fds[KEEPER_EGRESS_DNS],
			.dns_stream_fd = fds[KEEPER_EGRESS_DNS_STREAM],
			.is_transparent = answer.is_transparent};
	return r;
}

static int dial(struct native *native, const char *id, uint16_t port, bool is_v6, int timeout_ms,
	int *ret_fd, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_SOCKET, id);
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

static int call_for_layer(struct driver *driver, enum keeper_kind kind, const char *stack,
	const char *layer, unsigned index, int *ret_stream, struct err *err)
{
	struct keeper_request request = {.kind = kind, .index = index};
	struct keeper_answer answer;

	snprintf(request.stack, sizeof(request.stack), "%s", stack);
	snprintf(request.layer, sizeof(request.layer), "%s", layer);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, ret_stream, err);
}

static int native_write_layer(
	struct driver *driver, const char *layer, int *ret_stream, struct err *err)
{
	return call_for_layer(driver, KEEPER_LAYER_WRITE, "", layer, 0, ret_stream, err);
}

static int native_commit_layer(struct driver *driver, const char *layer, struct err *err)
{
	return call_for_layer(driver, KEEPER_LAYER_COMMIT, "", layer, 0, NULL, err);
}

static int native_drop_layer(struct driver *driver, const char *layer, struct err *err)
{
	return call_for_layer(driver, KEEPER_LAYER_DROP, "", layer, 0, NULL, err);
}

static int native_list_layers(struct driver *driver, bool stacks, const char *after,
	char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1], struct err *err)
{
	struct keeper_request request = {.kind = KEEPER_LAYER_LIST, .is_stack = stacks};
	struct keeper_answer answer;
	int r;

	snprintf(request.layer, sizeof(request.layer), "%s", after);
	r = keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
	if (r < 0)
		return r;
	memcpy(names, answer.digests, sizeof(answer.digests));
	return (int)answer.count;
}

static const struct {
	enum keeper_tree tree;
	bool is_snapshot;
} trees[] = {
	[DRIVER_TREE_SYSTEM] = {KEEPER_TREE_SYSTEM, false},
	[DRIVER_TREE_WORKSPACE] = {KEEPER_TREE_WORKSPACE, false},
	[DRIVER_TREE_LAYER] = {KEEPER_TREE_LAYER, false},
	[DRIVER_TREE_SNAPSHOT_SYSTEM] = {KEEPER_TREE_SYSTEM, true},
	[DRIVER_TREE_SNAPSHOT_WORKSPACE] = {KEEPER_TREE_WORKSPACE, true},
	[DRIVER_TREE_CHANGES] = {KEEPER_TREE_CHANGES, false},
	[DRIVER_TREE_SNAPSHOT_CHANGES] = {KEEPER_TREE_CHANGES, true},
};

static int call_for_tree(struct native *native, enum driver_tree tree, const char *name,
	const char *stack, bool has_content, int *ret_stream, struct err *err)
{
	struct keeper_request request = {
		.kind = KEEPER_TREE_READ, .tree = trees[tree].tree, .has_content = has_content};
	struct keeper_answer answer;
	int r = 0;

	snprintf(request.stack, sizeof(request.stack), "%s", stack);
	if (tree == DRIVER_TREE_LAYER) {
		snprintf(request.layer, sizeof(request.layer), "%s", name);
	} else if (trees[tree].is_snapshot) {
		snprintf(request.snapshot, sizeof(request.snapshot), "%s", name);
	} else {
		snprintf(request.id, sizeof(request.id), "%s", name);
		r = find_range(native, name, &request.slot, err);
	}
	return r < 0 ? r : keeper_client_call(&native->keeper, &request, &answer, ret_stream, err);
}

static int native_read_tree(struct driver *driver, enum driver_tree tree, const char *name,
	bool has_content, int *ret_stream, struct err *err)
{
	return call_for_tree(native_from(driver), tree, name, "", has_content, ret_stream, err);
}

static int native_read_changes(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, int *ret_stream, struct err *err)
{
	return call_for_tree(native_from(driver), tree, name, stack, false, ret_stream, err);
}

static int native_show_layer(
	struct driver *driver, const char *id, const char *layer, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_LAYER_SHOW, id);
	struct keeper_answer answer;

	snprintf(request.layer, sizeof(request.layer), "%s", layer);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_show_project(
	struct driver *driver, const char *id, const char *project, struct err *err)
{
	struct keeper_request request = request_for(KEEPER_PROJECT_SHOW, id);
	struct keeper_answer answer;

	snprintf(request.project, sizeof(request.project), "%s", project);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

static int native_stack_layers(struct driver *driver, const char *stack, const char *const layers[],
	size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = call_for_layer(
			driver, KEEPER_STACK_ADD, stack, layers[i], (unsigned)i, NULL, err);
	return r < 0 ? r : call_for_layer(driver, KEEPER_STACK_COMMIT, stack, "", 0, NULL, err);
}

static int native_drop_stack(struct driver *driver, const char *stack, struct err *err)
{
	return call_for_layer(driver, KEEPER_STACK_DROP, stack, "", 0, NULL, err);
}

static int call_for_snapshot(struct native *native, enum keeper_kind kind, const char *id,
	const char *snapshot, uint32_t slot, bool is_temporary, struct keeper_answer *answer,
	struct err *err)
{
	struct keeper_request request = request_for(kind, id);

	request.slot = slot;
	request.is_temporary = is_temporary;
	snprintf(request.snapshot, sizeof(request.snapshot), "%s", snapshot);
	return keeper_client_call(&native->keeper, &request, answer, NULL, err);
}

static int native_list_snapshots(struct driver *driver, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct keeper_answer answer;
	int r = call_for_snapshot(
		native_from(driver), KEEPER_SNAPSHOT_LIST, "", after, 0, false, &answer, err);

	if (r < 0)
		return r;
	memcpy(ids, answer.ids, sizeof(answer.ids));
	return (int)answer.count;
}

static int native_take_snapshot(struct driver *driver, const char *id, const char *snapshot,
	bool is_temporary, uint64_t *ret_bytes, struct err *err)
{
	struct keeper_answer answer;
	int r = call_for_snapshot(native_from(driver), KEEPER_SNAPSHOT_TAKE, id, snapshot, 0,
		is_temporary, &answer, err);

	if (r == 0)
		*ret_bytes = answer.stats.disk_bytes;
	return r;
}

static int native_load_snapshot(
	struct driver *driver, const char *id, const char *snapshot, bool takes, struct err *err)
{
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	uint32_t slot;
	int r = take_range(native, id, &slot, err);

	if (r == 0)
		r = call_for_snapshot(
			native, KEEPER_SNAPSHOT_COPY, id, snapshot, slot, takes, &answer, err);
	return r < 0 ? r
		     : call_for_snapshot(
			       native, KEEPER_SNAPSHOT_PLACE, id, "", 0, false, &answer, err);
}

static int native_drop_snapshot(struct driver *driver, const char *snapshot, struct err *err)
{
	struct keeper_answer answer;

	return call_for_snapshot(
		native_from(driver), KEEPER_SNAPSHOT_DROP, "", snapshot, 0, false, &answer, err);
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
	.write_layer = native_write_layer,
	.commit_layer = native_commit_layer,
	.drop_layer = native_drop_layer,
	.list_layers = native_list_layers,
	.read_tree = native_read_tree,
	.read_changes = native_read_changes,
	.show_layer = native_show_layer,
	.show_project = native_show_project,
	.stack_layers = native_stack_layers,
	.drop_stack = native_drop_stack,
	.take_snapshot = native_take_snapshot,
	.load_snapshot = native_load_snapshot,
	.drop_snapshot = native_drop_snapshot,
	.list_snapshots = native_list_snapshots,
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
		r = err_explain(err, ERR_UNAVAILABLE, "keeper_version",
			"end the old one with `sandlot shutdown`, then start again",
			"the running keeper speaks version %u, not %u", answer.version,
			KEEPER_VERSION);
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
