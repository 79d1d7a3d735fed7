/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a sandbox.
 *
 * A verb takes the life lock, settles what happened meanwhile, asks the state machine whether it may
 * do what it is for, does it through the driver, writes the new state, and only then returns. Between
 * "done" and "written" the daemon may die: reconcile.c makes rows and reality equal on the next start.
 */
#include "core/sandbox.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/link.h"
#include "core/network.h"
#include "core/roll.h"
#include "core/sandbox_state.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#define HELLO_TIMEOUT_MS 20000

/* --- handles --- */

const char *sandbox_id(const struct sandbox *sandbox)
{
	return sandbox->id;
}

struct engine *sandbox_engine(const struct sandbox *sandbox)
{
	return sandbox->engine;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct sandbox *)a)->id, ((const struct sandbox *)b)->id);
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
	atomic_fetch_add(&sandbox->refs, 1);
	return sandbox;
}

static void free_sandbox(struct sandbox *sandbox)
{
	sandbox_record_fini(&sandbox->record);
	pthread_mutex_destroy(&sandbox->life);
	pthread_mutex_destroy(&sandbox->state);
	pthread_cond_destroy(&sandbox->changed);
	free(sandbox);
}

/* The last reference goes under the engine's lock, where a look-up could still find it. */
void sandbox_unref(struct sandbox *sandbox)
{
	struct engine *engine;
	int refs;

	if (!sandbox)
		return;
	refs = atomic_load(&sandbox->refs);
	while (refs > 1) {
		if (atomic_compare_exchange_weak(&sandbox->refs, &refs, refs - 1))
			return;
	}
	engine = sandbox->engine;
	pthread_mutex_lock(&engine->lock);
	if (atomic_fetch_sub(&sandbox->refs, 1) > 1) {
		pthread_mutex_unlock(&engine->lock);
		return;
	}
	if (!sandbox->gone)
		tdelete(sandbox, &engine->sandboxes, compare);
	pthread_mutex_unlock(&engine->lock);
	free_sandbox(sandbox);
}

/* Looks one up that is in memory; the engine's lock is held. */
static struct sandbox *find(struct engine *engine, const char *id)
{
	struct sandbox key = {0}, **found;

	snprintf(key.id, sizeof(key.id), "%s", id);
	found = tfind(&key, &engine->sandboxes, compare);
	return found ? sandbox_ref(*found) : NULL;
}

/* A handle with a reference for the caller; takes over the record. The engine's lock is held. */
static struct sandbox *make_handle(
	struct engine *engine, struct sandbox_record *record, bool living)
{
	struct sandbox *sandbox = mem_new(sizeof(*sandbox));
	pthread_condattr_t attr;

	sandbox->refs = 1;
	sandbox->engine = engine;
	memcpy(sandbox->id, record->id, sizeof(sandbox->id));
	pthread_mutex_init(&sandbox->life, NULL);
	pthread_mutex_init(&sandbox->state, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sandbox->changed, &attr);
	pthread_condattr_destroy(&attr);
	sandbox->record = *record;
	atomic_init(&sandbox->last_active_ms, record->last_active_at_ms);
	/* Nobody can have it yet, so this succeeds, and is not against the order of locks. */
	if (living && pthread_mutex_trylock(&sandbox->life) != 0)
		abort();
	if (!tsearch(sandbox, &engine->sandboxes, compare))
		abort();
	return sandbox;
}

struct sandbox *sandbox_attach(struct engine *engine, struct sandbox_record *record)
{
	struct sandbox *sandbox;

	pthread_mutex_lock(&engine->lock);
	sandbox = find(engine, record->id);
	if (sandbox)
		sandbox_record_fini(record);
	else
		sandbox = make_handle(engine, record, false);
	pthread_mutex_unlock(&engine->lock);
	return sandbox;
}

/* Takes a deleted one out of the tree, so that its id can be used again. */
static void detach(struct sandbox *sandbox)
{
	struct engine *engine = sandbox->engine;

	pthread_mutex_lock(&engine->lock);
	if (!sandbox->gone)
		tdelete(sandbox, &engine->sandboxes, compare);
	pthread_mutex_lock(&sandbox->state);
	sandbox->gone = true;
	pthread_mutex_unlock(&sandbox->state);
	pthread_mutex_unlock(&engine->lock);
}

/* Removes the row and the handle together: a new one of the same id must not find the old handle. */
static int forget(struct sandbox *sandbox,
	int (*remove_row)(struct store *store, const char *id, struct err *err), struct err *err)
{
	struct engine *engine = sandbox->engine;
	int r;

	pthread_mutex_lock(&engine->births);
	r = remove_row(engine->config.store, sandbox->id, err);
	if (r == 0)
		detach(sandbox);
	pthread_mutex_unlock(&engine->births);
	return r;
}

/*
 * Adds a row and its handle together, with its life lock held: whoever finds it waits until it has
 * come up. Takes over the record.
 */
static int give_birth(struct engine *engine, struct sandbox_record *record,
	int (*add_row)(struct store *store, struct sandbox_record *record, struct err *err),
	struct sandbox **ret_sandbox, struct err *err)
{
	int r;

	pthread_mutex_lock(&engine->births);
	r = add_row(engine->config.store, record, err);
	if (r == 0) {
		pthread_mutex_lock(&engine->lock);
		*ret_sandbox = make_handle(engine, record, true);
		pthread_mutex_unlock(&engine->lock);
	} else {
		sandbox_record_fini(record);
	}
	pthread_mutex_unlock(&engine->births);
	return r;
}

static bool owns(const struct owner *owner, const struct sandbox_record *record)
{
	return !owner || (strcmp(owner->organization, record->owner.organization) == 0 &&
				 strcmp(owner->user, record->owner.user) == 0);
}

static struct sandbox *find_in_memory(struct engine *engine, const char *id)
{
	struct sandbox *sandbox;

	pthread_mutex_lock(&engine->lock);
	sandbox = find(engine, id);
	pthread_mutex_unlock(&engine->lock);
	return sandbox;
}

void engine_note_use(struct engine *engine, const char *id)
{
	struct sandbox *sandbox = find_in_memory(engine, id);

	if (sandbox)
		atomic_store(&sandbox->last_active_ms, clock_wall_ms());
	sandbox_unref(sandbox);
}

/* Reads the row and makes its handle while neither can come or go: the row cannot grow old meanwhile. */
static int load(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;
	int r = 0;

	pthread_mutex_lock(&engine->births);
	*ret_sandbox = find_in_memory(engine, id);
	if (!*ret_sandbox) {
		r = store_sandbox_get(engine->config.store, owner, id, &record, err);
		if (r == 0)
			*ret_sandbox = sandbox_attach(engine, &record);
	}
	pthread_mutex_unlock(&engine->births);
	return r;
}

int sandbox_get(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox *sandbox;
	bool owned;
	int r;

	if (!id_is_valid(id))
		return sandbox_not_found(id, err);
	sandbox = find_in_memory(engine, id);
	if (!sandbox) {
		r = load(engine, owner, id, &sandbox, err);
		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&sandbox->state);
	owned = owns(owner, &sandbox->record);
	pthread_mutex_unlock(&sandbox->state);
	if (!owned) {
		sandbox_unref(sandbox);
		return sandbox_not_found(id, err);
	}
	*ret_sandbox = sandbox;
	return 0;
}

void sandbox_read(struct sandbox *sandbox, struct sandbox_record *ret_record)
{
	pthread_mutex_lock(&sandbox->state);
	sandbox_record_copy(ret_record, &sandbox->record);
	pthread_mutex_unlock(&sandbox->state);
	ret_record->last_active_at_ms = atomic_load(&sandbox->last_active_ms);
}

bool sandbox_read_walls(struct sandbox *sandbox, struct walls *ret_walls)
{
	bool is_up;

	pthread_mutex_lock(&sandbox->state);
	is_up = sandbox->record.status == SANDBOX_RUNNING ||
		sandbox->record.status == SANDBOX_PAUSED;
	if (is_up)
		*ret_walls = sandbox->walls;
	pthread_mutex_unlock(&sandbox->state);
	return is_up;
}

int sandbox_open_logs(struct sandbox *sandbox, int *ret_fd, struct err *err)
{
	int parent = sandbox->engine->config.logs_fd;
	int fd;

	if (mkdirat(parent, sandbox->id, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make the directory for the output of sandbox %s", sandbox->id);
	fd = openat(parent, sandbox->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open the directory for the output of sandbox %s", sandbox->id);
	*ret_fd = fd;
	return 0;
}

/* --- writing down --- */

/* Makes a changed copy, writes it, and then makes it the record. life is held. */
static int write_record(
	struct sandbox *sandbox, const struct sandbox_record *changed, struct err *err)
{
	struct sandbox_record old;
	int r = store_sandbox_update(sandbox->engine->config.store, changed, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	old = sandbox->record;
	sandbox_record_copy(&sandbox->record, changed);
	pthread_mutex_unlock(&sandbox->state);
	sandbox_record_fini(&old);
	return 0;
}

static int write_status(struct sandbox *sandbox, enum sandbox_status status,
	const struct termination *end, struct err *err)
{
	struct sandbox_record changed;
	int r;

	sandbox_read(sandbox, &changed);
	changed.status = status;
	changed.end = *end;
	if (status == SANDBOX_RUNNING)
		changed.error_message[0] = '\0';
	r = write_record(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

static bool seems_up(const struct sandbox *sandbox)
{
	return sandbox->record.status == SANDBOX_RUNNING ||
	       sandbox->record.status == SANDBOX_PAUSED;
}

/* One that does not run gets its new limits with its next start. life is held. */
static int resize(struct sandbox *sandbox, uint64_t from_bytes, uint64_t to_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = 0;

	if (seems_up(sandbox) && from_bytes != to_bytes)
		r = driver->ops->resize(driver, sandbox->id, to_bytes, err);
	return r == -ENOENT ? 0 : r; /* it ended by itself just now */
}

/* life is held. */
static int change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err)
{
	uint64_t disk_bytes = sandbox->record.resources.disk_bytes;
	struct sandbox_record before, changed;
	struct err ignored;
	bool is_other_network;
	int r;

	sandbox_read(sandbox, &before);
	sandbox_read(sandbox, &changed);
	apply(&changed, arg);
	is_other_network = !json_equal(changed.network, sandbox->record.network);
	r = resize(sandbox, disk_bytes, changed.resources.disk_bytes, err);
	if (r == 0) {
		r = write_record(sandbox, &changed, err);
		if (r < 0 &&
			resize(sandbox, changed.resources.disk_bytes, disk_bytes, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
	}
	if (r == 0 && is_other_network) {
		r = network_change(sandbox, err);
		if (r < 0 && write_record(sandbox, &before, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
	}
	sandbox_record_fini(&before);
	sandbox_record_fini(&changed);
	return r;
}

int sandbox_change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->life);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err) : change(sandbox, apply, arg, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}

/* --- the link --- */

static int on_hello(struct sandbox *sandbox, const struct frame *frame)
{
	struct unpack in = UNPACK_INIT(frame->payload, frame->len);
	uint32_t version = unpack_u32(&in), count = unpack_u32(&in);
	struct link *link;
	bool is_repeated;

	if (in.bad || version != AGENT_VERSION || count > AGENT_PROCESSES_MAX)
		return -EPROTO;
	pthread_mutex_lock(&sandbox->state);
	link = sandbox->link ? link_ref(sandbox->link) : NULL;
	is_repeated = sandbox->greeted;
	pthread_mutex_unlock(&sandbox->state);
	if (is_repeated) {
		link_unref(link);
		return -EPROTO;
	}
	if (link)
		roll_call(sandbox, link, &in, count);
	link_unref(link);
	pthread_mutex_lock(&sandbox->state);
	sandbox->greeted = true;
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	return unpack_done(&in) ? 0 : -EPROTO;
}

static int on_frame(void *arg, const struct frame *frame)
{
	struct sandbox *sandbox = arg;

	return frame->kind == AGENT_HELLO ? on_hello(sandbox, frame)
					  : process_frame(sandbox, frame);
}

/* The agent is gone. The verb that ends it knows; else the reaper finds out what happened. Whoever it is
 * ends the processes too, with the reason. */
static void on_lost(void *arg)
{
	struct sandbox *sandbox = arg;
	struct engine *engine = sandbox->engine;
	struct link *link;
	bool ending;

	pthread_mutex_lock(&sandbox->state);
	link = take_ptr(&sandbox->link);
	ending = sandbox->ending;
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	link_unref(link);
	if (!ending) {
		pthread_mutex_lock(&engine->lock);
		if (engine->lost_count == engine->lost_cap) {
			engine->lost_cap = engine->lost_cap ? engine->lost_cap * 2 : 16;
			engine->lost =
				realloc(engine->lost, engine->lost_cap * sizeof(*engine->lost));
			if (!engine->lost)
				abort();
		}
		engine->lost[engine->lost_count++] = sandbox_ref(sandbox);
		pthread_cond_signal(&engine->work);
		pthread_mutex_unlock(&engine->lock);
	}
	sandbox_unref(sandbox);
}

static const struct link_events link_events = {.frame = on_frame, .lost = on_lost};

static struct timespec deadline_after(unsigned ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	return ts;
}

static void greet(struct link *link)
{
	struct buf version = BUF_INIT(8);

	pack_u32(&version, AGENT_VERSION);
	/* If it cannot be sent the link is lost, which whoever waits for the answer will see. */
	(void)!link_send(link, AGENT_ATTACH, 0, version.data, version.len, -1);
	buf_fini(&version);
}

/* Takes up a new link; a reference of it. life is held. */
static int open_link(struct sandbox *sandbox, int link_fd, struct link **ret_link, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->state);
	sandbox->greeted = sandbox->ending = false;
	sandbox->end_reason = END_NONE;
	r = link_open(sandbox->engine->reactor, link_fd, &link_events, sandbox_ref(sandbox),
		&sandbox->link, err);
	if (r < 0) {
		pthread_mutex_unlock(&sandbox->state);
		sandbox_unref(sandbox);
		return r;
	}
	*ret_link = link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

/* Waits until the agent has answered on its present link, and gives a reference to that. */
static int await_hello(struct sandbox *sandbox, struct link **ret_link, struct err *err)
{
	struct timespec deadline = deadline_after(HELLO_TIMEOUT_MS);
	int r = 0, waited = 0;

	pthread_mutex_lock(&sandbox->state);
	while (sandbox->link && !sandbox->greeted && waited == 0)
		waited = pthread_cond_timedwait(&sandbox->changed, &sandbox->state, &deadline);
	if (!sandbox->link)
		r = err_set(err, ERR_CONFLICT, "sandbox %s ended meanwhile", sandbox->id);
	else if (!sandbox->greeted)
		r = err_set(err, ERR_TIMEOUT, "the agent of sandbox %s did not answer within %d s",
			sandbox->id, HELLO_TIMEOUT_MS / 1000);
	else
		*ret_link = link_ref(sandbox->link);
	pthread_mutex_unlock(&sandbox->state);
	return r;
}

/* From now on the loss of the link is no surprise. A reference to it, or NULL if there is none. */
static struct link *expect_end(struct sandbox *sandbox, enum end_reason reason)
{
	struct link *link;

	pthread_mutex_lock(&sandbox->state);
	sandbox->ending = true;
	sandbox->end_reason = reason;
	link = sandbox->link ? link_ref(sandbox->link) : NULL;
	pthread_mutex_unlock(&sandbox->state);
	return link;
}

/* Closes the link, if any, waits until its last event is through, and ends what ran. life is held. */
static void disconnect_agent(struct sandbox *sandbox, const struct termination *how)
{
	struct link *link = expect_end(sandbox, how->reason);

	network_close(sandbox);
	if (link) {
		link_close(link);
		link_unref(link);
		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link)
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
		pthread_mutex_unlock(&sandbox->state);
	}
	roll_end_all(sandbox, how);
}

static void set_walls(struct sandbox *sandbox, const struct walls *walls)
{
	pthread_mutex_lock(&sandbox->state);
	sandbox->walls = *walls;
	pthread_mutex_unlock(&sandbox->state);
}

/* Without waiting: one agent that does not answer must not hold up the start of the daemon. */
int sandbox_adopt(struct sandbox *sandbox, int link_fd, const struct walls *walls, struct err *err)
{
	struct link *link;
	int r = open_link(sandbox, link_fd, &link, err);

	if (r < 0)
		return r;
	set_walls(sandbox, walls);
	r = roll_recall(sandbox, link, err);
	/* Without a way out it goes on; the next command tries again. */
	if (r == 0 && network_open(sandbox, err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err->message);
	if (r == 0)
		greet(link);
	link_unref(link);
	return r;
}

/* --- starting and ending, life held --- */

/* A start failed: ends what there is of it. The driver may know why; its words are the better ones. */
static int explain_failure(struct sandbox *sandbox, int r, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_end how = {0};
	struct err ignored;

	link_unref(expect_end(sandbox, END_AGENT_LOST));
	if (driver->ops->stop(driver, sandbox->id, &how, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	disconnect_agent(sandbox, &(struct termination){.reason = END_AGENT_LOST});
	if (how.cause.kind != ERR_NONE) {
		*err = how.cause;
		return -err_class((enum err_kind)err->kind)->errnum;
	}
	if (r == -EEXIST)
		return err_set(err, ERR_INTERNAL, "sandbox %s ended while starting", sandbox->id);
	return r;
}

static int bring_up(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_spec spec = {.id = sandbox->id,
		.hostname = "sandbox",
		.slot = sandbox->record.slot,
		.resources = sandbox->record.resources};
	const struct template *template = template_find(sandbox->record.template_name);
	struct link *link = NULL;
	struct walls walls;
	int link_fd = -1, r;

	if (!template)
		return err_explain(err, ERR_UNAVAILABLE, "template_not_found", NULL,
			"the template %s does not exist any more", sandbox->record.template_name);
	spec.profile = template->profile;
	r = driver->ops->start(driver, &spec, &link_fd, &walls, err);
	if (r < 0)
		return r;
	set_walls(sandbox, &walls);
	r = open_link(sandbox, link_fd, &link, err);
	if (r == 0) {
		greet(link);
		link_unref(take_ptr(&link));
		r = await_hello(sandbox, &link, err);
	}
	link_unref(link);
	return r < 0 ? explain_failure(sandbox, r, err) : 0;
}

/* Gives processes a moment to end by themselves. Not worth it if there are none. */
static void ask_to_end(struct sandbox *sandbox, enum end_reason reason)
{
	unsigned grace_ms = sandbox->engine->config.stop_grace_ms;
	struct timespec deadline = deadline_after(grace_ms + 500);
	struct buf grace = BUF_INIT(8);
	struct link *link;

	link = expect_end(sandbox, reason);
	if (!link)
		return;
	pack_u32(&grace, grace_ms);
	if (link_send(link, AGENT_SHUTDOWN, 0, grace.data, grace.len, -1) == 0) {
		int waited = 0;

		pthread_mutex_lock(&sandbox->state);
		while (sandbox->link && waited == 0)
			waited = pthread_cond_timedwait(
				&sandbox->changed, &sandbox->state, &deadline);
		pthread_mutex_unlock(&sandbox->state);
	}
	buf_fini(&grace);
	link_unref(link);
}

/* What it has used by now; nothing if it does not run. */
static void read_usage(struct sandbox *sandbox, struct termination *how)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_stats stats;
	struct err ignored;

	if (driver->ops->stats(driver, sandbox->id, &stats, &ignored) < 0)
		return;
	how->cpu_us = stats.cpu_us;
	how->peak_memory_bytes = stats.memory_peak_bytes;
}

static int take_down(
	struct sandbox *sandbox, bool gently, const struct termination *how, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	bool paused = sandbox->record.status == SANDBOX_PAUSED;
	int r;

	if (gently && !paused)
		ask_to_end(sandbox, how->reason);
	link_unref(expect_end(sandbox, how->reason));
	r = driver->ops->stop(driver, sandbox->id, NULL, err);
	if (r == 0)
		disconnect_agent(sandbox, how);
	return r;
}

/* It ended by itself. Who killed its first process, if the kernel did not for want of memory? */
static void describe_end(const struct driver_end *how, struct termination *end)
{
	const struct driver_stats *last = &how->last;
	int status = how->wait_status;

	*end = (struct termination){.reason = END_AGENT_LOST,
		.cpu_us = last->cpu_us,
		.peak_memory_bytes = last->memory_peak_bytes};
	if (!how->ended) {
		snprintf(end->detail, sizeof(end->detail), "the sandbox ended by itself");
	} else if (!WIFSIGNALED(status)) {
		snprintf(end->detail, sizeof(end->detail),
			"its first process exited with status %d", WEXITSTATUS(status));
	} else {
		end->signal = WTERMSIG(status);
		if (end->signal == SIGKILL && last->oom_kills > 0)
			end->reason = END_OOM;
		snprintf(end->detail, sizeof(end->detail),
			"its first process was killed by signal %d%s%s", end->signal,
			last->oom_victim[0] ? "; the kernel last ended for want of memory: " : "",
			last->oom_victim);
	}
}

/* life is held. */
static void settle(struct sandbox *sandbox)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_end how = {0};
	struct termination end;
	struct err err;
	bool lost;

	pthread_mutex_lock(&sandbox->state);
	lost = seems_up(sandbox) && !sandbox->link && !sandbox->gone;
	pthread_mutex_unlock(&sandbox->state);
	if (!lost)
		return;
	if (driver->ops->stop(driver, sandbox->id, &how, &err) < 0) {
		log_error("sandbox %s lost its agent and cannot be ended: %s", sandbox->id,
			err.message);
		return;
	}
	describe_end(&how, &end);
	log_warning("sandbox %s ended unexpectedly: %s", sandbox->id, end.detail);
	disconnect_agent(sandbox, &end);
	if (write_status(sandbox, SANDBOX_STOPPED, &end, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

void sandbox_settle(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->life);
	settle(sandbox);
	pthread_mutex_unlock(&sandbox->life);
}

/* Begins a verb: takes the life lock and asks whether it may. On 1 or an error nothing is to be done. */
static int begin(struct sandbox *sandbox, enum sandbox_verb verb, struct err *err)
{
	pthread_mutex_lock(&sandbox->life);
	if (sandbox->gone)
		return sandbox_not_found(sandbox->id, err);
	settle(sandbox);
	return sandbox_verb_check(&sandbox->record, verb, err);
}

static int finish(struct sandbox *sandbox, int r)
{
	pthread_mutex_unlock(&sandbox->life);
	return r < 0 ? r : 0;
}

/* --- verbs --- */

static const struct termination by_operator = {.reason = END_OPERATOR};

static int write_running(struct sandbox *sandbox, struct err *err)
{
	struct sandbox_record changed;
	int64_t now = clock_wall_ms();
	int r;

	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_RUNNING;
	changed.started_at_ms = changed.last_active_at_ms = now;
	changed.end = (struct termination){0};
	changed.error_message[0] = '\0';
	atomic_store(&sandbox->last_active_ms, now);
	r = write_record(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

/* Starts one that is stopped or in error; a failure, but for want of quota, is its new state. life is
 * held. */
static int wake(struct sandbox *sandbox, struct err *err)
{
	struct sandbox_record changed;
	struct err ignored;
	int r = store_sandbox_claim(sandbox->engine->config.store, &sandbox->record, err);

	if (r < 0)
		return r;
	r = bring_up(sandbox, err);
	if (r == 0) {
		r = write_running(sandbox, err);
		if (r < 0 && take_down(sandbox, false, &by_operator, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
		return r;
	}
	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_ERROR;
	snprintf(changed.error_message, sizeof(changed.error_message), "%s", err->message);
	if (write_record(sandbox, &changed, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	sandbox_record_fini(&changed);
	sandbox_announce(sandbox);
	err_prefix(err, "sandbox %s cannot be started", sandbox->id);
	return r;
}

int sandbox_start(struct sandbox *sandbox, struct err *err)
{
	int r = begin(sandbox, SANDBOX_START, err);

	if (r == 0)
		r = wake(sandbox, err);
	return finish(sandbox, r);
}

int sandbox_stop(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	struct termination how = {.reason = reason};
	int r = begin(sandbox, SANDBOX_STOP, err);

	if (r == 0) {
		read_usage(sandbox, &how);
		r = take_down(sandbox, true, &how, err);
	} else if (r == 1) {
		return finish(sandbox, r);
	}
	if (r == 0)
		r = write_status(sandbox, SANDBOX_STOPPED, &how, err);
	return finish(sandbox, r);
}

static int set_frozen(struct sandbox *sandbox, bool frozen, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = begin(sandbox, frozen ? SANDBOX_PAUSE : SANDBOX_RESUME, err);
	struct err ignored;

	if (r != 0)
		return finish(sandbox, r);
	r = driver->ops->freeze(driver, sandbox->id, frozen, err);
	if (r < 0)
		return finish(sandbox, r);
	r = write_status(
		sandbox, frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING, &(struct termination){0}, err);
	/* One that is frozen and said to run would never answer. */
	if (r < 0 && driver->ops->freeze(driver, sandbox->id, !frozen, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	return finish(sandbox, r);
}

int sandbox_pause(struct sandbox *sandbox, struct err *err)
{
	return set_frozen(sandbox, true, err);
}

int sandbox_resume(struct sandbox *sandbox, struct err *err)
{
	return set_frozen(sandbox, false, err);
}

int sandbox_reset(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct termination how = {.reason = END_OPERATOR, .detail = "reset"};
	int r = begin(sandbox, SANDBOX_RESET, err);
	bool ran = seems_up(sandbox);

	if (r == 0)
		r = take_down(sandbox, false, &how, err);
	/* Written first: a crash from here on leaves a stopped sandbox, emptied or not, never half of
	 * one that claims to run. */
	if (r == 0)
		r = write_status(sandbox, SANDBOX_STOPPED, &how, err);
	if (r == 0)
		r = driver->ops->clean(driver, sandbox->id, sandbox->record.slot,
			DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH, err);
	if (r == 0 && ran)
		r = wake(sandbox, err);
	return finish(sandbox, r);
}

/* life is held. The row goes last: until then nobody can make another one of its id. */
static int remove_one(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err ignored;
	int r = take_down(sandbox, false, &(struct termination){.reason = reason}, err);

	if (r < 0)
		return r;
	/* It is not to fail the call: what stays is removed on the next start. */
	if (driver->ops->clean(
		    driver, sandbox->id, sandbox->record.slot, DRIVER_PART_ALL, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	r = forget(sandbox, store_sandbox_delete, err);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

int sandbox_delete(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->life);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err) : remove_one(sandbox, reason, err);
	return finish(sandbox, r);
}

/* A sandbox that is there only so that nobody takes up its workspace; its life lock is held. */
static int claim(struct engine *engine, const struct workspace_record *workspace,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;

	sandbox_record_init(&record);
	memcpy(record.id, workspace->id, sizeof(record.id));
	record.owner = workspace->owner;
	record.status = SANDBOX_CREATING;
	record.idle_timeout_s = record.lifetime_s = SANDBOX_NO_LIMIT;
	return give_birth(engine, &record, store_sandbox_hold, ret_sandbox, err);
}

/* life is held. */
static int purge(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err ignored;
	int r = take_down(sandbox, false, &by_operator, err);

	if (r < 0)
		return r;
	r = driver->ops->clean(driver, sandbox->id, sandbox->record.slot,
		DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, err);
	/* Before the id is free: a new sandbox of it must not find what the old one wrote. */
	if (r == 0)
		engine_remove_logs(sandbox->engine, sandbox->id);
	if (r == 0)
		r = forget(sandbox, store_workspace_delete, err);
	if (r < 0 && forget(sandbox, store_sandbox_delete, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	if (sandbox->gone)
		sandbox_announce(sandbox);
	return r;
}

int sandbox_purge(struct engine *engine, const struct owner *owner, const char *id, struct err *err)
{
	struct workspace_record workspace;
	int r;

	if (!id_is_valid(id))
		return sandbox_not_found(id, err);
	/* Somebody may create or delete it between our look and our try; then we look again. */
	for (int attempt = 0; attempt < 3; attempt++) {
		auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;

		r = store_workspace_get(engine->config.store, owner, id, &workspace, err);
		if (r < 0)
			return r;
		r = sandbox_get(engine, owner, id, &sandbox, err);
		if (r == 0)
			pthread_mutex_lock(&sandbox->life);
		else if (r == -ENOENT)
			r = claim(engine, &workspace, &sandbox, err);
		if (r == -EEXIST)
			continue;
		if (r < 0)
			return r;
		r = sandbox->gone ? sandbox_not_found(id, err) : purge(sandbox, err);
		if (finish(sandbox, r) != -ENOENT)
			return r;
	}
	return r;
}

/* Undoes a create that failed: nothing of it may stay, but a workspace from before does. */
static void undo_create(struct sandbox *sandbox, bool kept_workspace)
{
	struct driver *driver = sandbox->engine->config.driver;
	unsigned parts = DRIVER_PART_ALL | (kept_workspace ? 0 : DRIVER_PART_WORKSPACE);
	struct err err;
	int r = driver->ops->stop(driver, sandbox->id, NULL, &err);

	disconnect_agent(sandbox, &by_operator);
	if (r == 0)
		r = driver->ops->clean(driver, sandbox->id, sandbox->record.slot, parts, &err);
	if (r == 0)
		r = forget(sandbox, kept_workspace ? store_sandbox_delete : store_workspace_delete,
			&err);
	if (r < 0) {
		log_error("undo the creation of sandbox %s: %s", sandbox->id, err.message);
		detach(sandbox);
	}
}

/* Disks are sparse: what they promise together may be more than there is. */
static int check_room(const struct engine *engine, struct err *err)
{
	struct statvfs disk;

	if (fstatvfs(engine->config.logs_fd, &disk) < 0 ||
		(uint64_t)disk.f_bavail * disk.f_frsize >= engine->config.disk_reserve)
		return 0;
	return err_explain(err, ERR_NO_SPACE, NULL,
		"purge workspaces that nobody needs, or make the file system of the data directory "
		"larger",
		"the host has less free disk space than its reserve");
}

int sandbox_create(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct workspace_record workspace;
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct err ignored;
	bool kept;
	int r = check_room(engine, err);

	if (r < 0)
		return r;
	sandbox_record_copy(&record, draft);
	record.status = SANDBOX_CREATING;
	record.created_at_ms = record.last_active_at_ms = clock_wall_ms();
	if (record.lifetime_s != SANDBOX_NO_LIMIT)
		record.expires_at_ms = record.created_at_ms + record.lifetime_s * 1000;
	if (!record.id[0])
		id_new(record.created_at_ms, record.id);
	kept = draft->id[0] && store_workspace_get(engine->config.store, &record.owner, record.id,
				       &workspace, &ignored) == 0;
	r = give_birth(engine, &record, store_sandbox_insert, &sandbox, err);
	if (r < 0)
		return r;
	r = bring_up(sandbox, err);
	if (r == 0)
		r = write_running(sandbox, err);
	if (r < 0)
		undo_create(sandbox, kept);
	pthread_mutex_unlock(&sandbox->life);
	if (r < 0) {
		sandbox_unref(sandbox);
		return r;
	}
	*ret_sandbox = sandbox;
	return 0;
}

static int find_existing(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;
	int r;

	if (draft->id[0])
		return sandbox_get(engine, &draft->owner, draft->id, ret_sandbox, err);
	if (!draft->project[0])
		return -ENOENT;
	pthread_mutex_lock(&engine->births);
	r = store_sandbox_find(engine->config.store, &draft->owner, draft->project, &record, err);
	if (r == 0)
		*ret_sandbox = sandbox_attach(engine, &record);
	pthread_mutex_unlock(&engine->births);
	return r;
}

/* What is left of one whose start failed is not trusted: its system layer is made anew. Its workspace,
 * id and settings stay. life is held. */
static int rebuild(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = take_down(sandbox, false, &by_operator, err);

	if (r == 0)
		r = driver->ops->clean(
			driver, sandbox->id, sandbox->record.slot, DRIVER_PART_SYSTEM, err);
	return r < 0 ? r : wake(sandbox, err);
}

static int make_healthy(struct sandbox *sandbox, bool *ret_rebuilt, struct err *err)
{
	int r = begin(sandbox, SANDBOX_USE, err);

	if (r == 0 && sandbox->record.status == SANDBOX_ERROR) {
		r = rebuild(sandbox, err);
		*ret_rebuilt = r == 0;
	} else if (r == 0) {
		r = wake(sandbox, err);
	}
	return finish(sandbox, r);
}

int sandbox_ensure(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, bool *ret_created, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	int r;

	*ret_created = false;
	/* Somebody may create it between our look and our try; then the second look finds it. */
	for (int attempt = 0; attempt < 3; attempt++) {
		r = find_existing(engine, draft, &sandbox, err);
		if (r == 0) {
			r = make_healthy(sandbox, ret_created, err);
			if (r == -ENOENT) { /* deleted under us */
				sandbox_unref(take_ptr(&sandbox));
				continue;
			}
			if (r == 0)
				*ret_sandbox = take_ptr(&sandbox);
			return r;
		}
		if (r != -ENOENT)
			return r;
		r = sandbox_create(engine, draft, ret_sandbox, err);
		if (r == 0)
			*ret_created = true;
		if (r != -EEXIST)
			return r;
	}
	return r;
}

/* --- use --- */

int sandbox_use(struct sandbox *sandbox, struct link **ret_link, struct err *err)
{
	bool runs;
	int r = 0;

	atomic_store(&sandbox->last_active_ms, clock_wall_ms());
	pthread_mutex_lock(&sandbox->state);
	runs = sandbox->record.status == SANDBOX_RUNNING && sandbox->link && !sandbox->ending;
	pthread_mutex_unlock(&sandbox->state);
	if (!runs) {
		r = begin(sandbox, SANDBOX_USE, err);
		if (r == 0)
			r = wake(sandbox, err);
		r = finish(sandbox, r);
	}
	return r < 0 ? r : await_hello(sandbox, ret_link, err);
}
