/* SPDX-License-Identifier: Apache-2.0 */
#include "core_fixture.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/preview/subscription.h"
#include "core/upkeep/engine_open.h"
#include "fd_count.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

const struct owner world_owner = {.organization = "org", .user = "user"};
const struct owner world_stranger = {.organization = "org", .user = "somebody-else"};

/* jansson looks at a count of references before it changes it, atomically: no race that matters. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:json_incref\nrace:json_decref\n";
}

/* --- the clock --- */

atomic_llong world_wall_shift_ms;

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void)
{
	return __real_clock_wall_ms() + atomic_load(&world_wall_shift_ms);
}

/* --- frames --- */

void wire_write(int fd, uint16_t kind, uint32_t id, const void *payload, size_t len)
{
	struct buf out = BUF_INIT(FRAME_HEADER_LEN + len);

	frame_put(&out, kind, id, payload, len);
	/* A link that was closed meanwhile is for the test to notice elsewhere. */
	(void)!fd_write_full(fd, out.data, out.len);
	buf_fini(&out);
}

static bool read_exactly(int fd, uint8_t *data, size_t len)
{
	while (len > 0) {
		struct pollfd pollfd = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&pollfd, 1, DEADLINE_MS) == 0)
			fail_msg("no frame came");
		n = recv(fd, data, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

bool wire_read(int fd, struct wire_frame *ret_frame)
{
	uint8_t header[FRAME_HEADER_LEN];
	struct unpack in = UNPACK_INIT(header, sizeof(header));
	size_t left;

	if (!read_exactly(fd, header, sizeof(header)))
		return false;
	*ret_frame = (struct wire_frame){0};
	ret_frame->len = unpack_u32(&in);
	ret_frame->kind = unpack_u16(&in);
	(void)unpack_u16(&in);
	ret_frame->id = unpack_u32(&in);
	left = ret_frame->len;
	for (bool first = true; left > 0; first = false) {
		uint8_t rest[sizeof(ret_frame->payload)];
		size_t n = left < sizeof(rest) ? left : sizeof(rest);

		if (!read_exactly(fd, rest, n))
			return false;
		if (first)
			memcpy(ret_frame->payload, rest, n);
		left -= n;
	}
	return true;
}

void wire_expect(int fd, uint16_t kind, struct wire_frame *ret_frame)
{
	assert_true(wire_read(fd, ret_frame));
	assert_int_equal(ret_frame->kind, kind);
}

/* --- the store's failures --- */

struct store_script store_script;

static int consult(enum store_op op, const char *id, struct err *err)
{
	void (*before)(enum store_op op, const char *id) = atomic_load(&store_script.before);
	int left = atomic_load(&store_script.fail[op]);

	if (before)
		before(op, id);
	atomic_fetch_add(&store_script.calls[op], 1);
	while (left > 0) {
		if (atomic_compare_exchange_weak(&store_script.fail[op], &left, left - 1))
			return err_set(err, ERR_NO_SPACE, "the store was told to fail");
	}
	return 0;
}

static int note(enum store_op op, const char *id, int r)
{
	void (*after)(enum store_op op, const char *id) = atomic_load(&store_script.after);

	if (r == 0 && after)
		after(op, id);
	return r;
}

/* The linker puts these in the place of the functions they are named after. */
int __real_store_sandbox_insert(
	struct store *store, struct sandbox_record *record, struct err *err);
int __wrap_store_sandbox_insert(
	struct store *store, struct sandbox_record *record, struct err *err);
int __real_store_sandbox_update(
	struct store *store, const struct sandbox_record *record, struct err *err);
int __wrap_store_sandbox_update(
	struct store *store, const struct sandbox_record *record, struct err *err);
int __real_store_sandbox_delete(struct store *store, const char *id, struct err *err);
int __wrap_store_sandbox_delete(struct store *store, const char *id, struct err *err);
int __real_store_sandbox_touch(struct store *store, const char *id, int64_t at, struct err *err);
int __wrap_store_sandbox_touch(struct store *store, const char *id, int64_t at, struct err *err);
int __real_store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	const char *session, struct sandbox_record *record, struct err *err);
int __wrap_store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	const char *session, struct sandbox_record *record, struct err *err);
int __real_store_workspace_delete(struct store *store, const char *id, struct err *err);
int __wrap_store_workspace_delete(struct store *store, const char *id, struct err *err);
int __real_store_process_insert(
	struct store *store, const struct process_record *record, struct err *err);
int __wrap_store_process_insert(
	struct store *store, const struct process_record *record, struct err *err);
int __real_store_process_update(
	struct store *store, const struct process_record *record, struct err *err);
int __wrap_store_process_update(
	struct store *store, const struct process_record *record, struct err *err);

int __wrap_store_sandbox_insert(struct store *store, struct sandbox_record *record, struct err *err)
{
	int r = consult(STORE_INSERT, record->id, err);

	return note(STORE_INSERT, record->id,
		r < 0 ? r : __real_store_sandbox_insert(store, record, err));
}

int __wrap_store_sandbox_update(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	int r = consult(STORE_UPDATE, record->id, err);

	return note(STORE_UPDATE, record->id,
		r < 0 ? r : __real_store_sandbox_update(store, record, err));
}

int __wrap_store_sandbox_delete(struct store *store, const char *id, struct err *err)
{
	int r = consult(STORE_DELETE, id, err);

	return note(STORE_DELETE, id, r < 0 ? r : __real_store_sandbox_delete(store, id, err));
}

int __wrap_store_sandbox_touch(struct store *store, const char *id, int64_t at, struct err *err)
{
	int r = consult(STORE_TOUCH, id, err);

	return note(STORE_TOUCH, id, r < 0 ? r : __real_store_sandbox_touch(store, id, at, err));
}

int __wrap_store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	const char *session, struct sandbox_record *record, struct err *err)
{
	int r = consult(STORE_FIND, project, err);

	return note(STORE_FIND, project,
		r < 0 ? r : __real_store_sandbox_find(store, owner, project, session, record, err));
}

int __wrap_store_workspace_delete(struct store *store, const char *id, struct err *err)
{
	int r = consult(STORE_WORKSPACE_DELETE, id, err);

	return note(STORE_WORKSPACE_DELETE, id,
		r < 0 ? r : __real_store_workspace_delete(store, id, err));
}

int __wrap_store_process_insert(
	struct store *store, const struct process_record *record, struct err *err)
{
	int r = consult(STORE_PROCESS_INSERT, record->sandbox_id, err);

	return note(STORE_PROCESS_INSERT, record->sandbox_id,
		r < 0 ? r : __real_store_process_insert(store, record, err));
}

int __wrap_store_process_update(
	struct store *store, const struct process_record *record, struct err *err)
{
	int r = consult(STORE_PROCESS_UPDATE, record->sandbox_id, err);

	return note(STORE_PROCESS_UPDATE, record->sandbox_id,
		r < 0 ? r : __real_store_process_update(store, record, err));
}

static void reset_script(void)
{
	for (int op = 0; op < STORE_OP_COUNT; op++) {
		atomic_store(&store_script.fail[op], 0);
		atomic_store(&store_script.calls[op], 0);
	}
	atomic_store(&store_script.before, NULL);
	atomic_store(&store_script.after, NULL);
}

/* --- the world --- */

struct timespec world_deadline(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	return until;
}

void world_await(sem_t *sem)
{
	struct timespec until = world_deadline();

	while (sem_timedwait(sem, &until) < 0)
		assert_int_equal(errno, EINTR);
}

static int make_dir(const char *dir, const char *name)
{
	auto_free char *path = mem_printf("%s/%s", dir, name);

	if (mkdir(path, 0700) < 0)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int world_setup_closed(void **state)
{
	struct world *world = mem_new(sizeof(*world));
	struct err err;

	log_open("test", LOG_ERROR + 1); /* what goes wrong here goes wrong on purpose */
	reset_script();
	world->fds_before = count_fds();
	snprintf(world->dir, sizeof(world->dir), "/tmp/sandlot-core-XXXXXX");
	if (!mkdtemp(world->dir))
		return -1;
	snprintf(world->database, sizeof(world->database), "%s/state.db", world->dir);
	fake_init(&world->driver);
	if (store_open(world->database, &world->store, &err) < 0)
		return -1;
	world->logs_fd = make_dir(world->dir, "logs");
	world->unfinished_fd = make_dir(world->dir, "unfinished");
	world->baselines_fd = make_dir(world->dir, "baselines");
	if (world->logs_fd < 0 || world->unfinished_fd < 0 || world->baselines_fd < 0)
		return -1;
	world->bus = event_bus_new((uint64_t)clock_wall_ms() * 1000);
	world->config = (struct engine_config){.store = world->store,
		.bus = world->bus,
		.driver = &world->driver.base,
		.stop_grace_ms = 0,
		.logs_fd = world->logs_fd,
		.unfinished_fd = world->unfinished_fd,
		.baselines_fd = world->baselines_fd,
		.output_max = 1u << 20,
		.output_sandbox_max = 64u << 20,
		.process_history = 100};
	*state = world;
	return 0;
}

void world_open(struct world *world)
{
	struct err err = {0};

	if (engine_open(&world->config, &world->engine, &err) < 0)
		fail_msg("%s", err.message);
}

void world_close(struct world *world)
{
	engine_close(take_ptr(&world->engine));
}

int world_setup(void **state)
{
	if (world_setup_closed(state) < 0)
		return -1;
	world_open(*state);
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int world_teardown(void **state)
{
	struct world *world = *state;

	engine_close(world->engine);
	atomic_store(&world_wall_shift_ms, 0);
	assert_int_equal(world->driver.overlaps, 0);
	assert_int_equal(world->driver.starts_twice, 0);
	fake_fini(&world->driver);
	event_bus_free(world->bus);
	store_close(world->store);
	close(world->logs_fd);
	close(world->unfinished_fd);
	close(world->baselines_fd);
	assert_int_equal(nftw(world->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(count_fds(), world->fds_before);
	free(world);
	return 0;
}

static char world_ids['z' + 1][ID_LEN + 1];

__attribute__((constructor)) static void make_ids(void)
{
	for (char letter = '0'; letter <= 'z'; letter++)
		memset(world_ids[(unsigned char)letter], letter, ID_LEN);
}

const char *world_id(char letter)
{
	return world_ids[(unsigned char)letter];
}

void world_draft(struct sandbox_record *draft, const char *id, const char *project)
{
	sandbox_record_init(draft);
	draft->owner = world_owner;
	draft->resources = (struct resources){
		.cpu_millis = 1000, .memory_bytes = 1 << 30, .disk_bytes = 1 << 30, .pids = 100};
	snprintf(draft->id, sizeof(draft->id), "%s", id);
	snprintf(draft->project, sizeof(draft->project), "%s", project);
	snprintf(draft->template_name, sizeof(draft->template_name), "host");
	snprintf(draft->driver, sizeof(draft->driver), "fake");
	draft->idle_timeout_s = draft->lifetime_s = SANDBOX_NO_LIMIT;
}

struct sandbox *world_create(struct world *world, const char *id)
{
	struct sandbox *sandbox = NULL;
	struct sandbox_record draft;
	struct err err = {0};

	world_draft(&draft, id, "");
	if (sandbox_create(world->engine, &draft, &sandbox, &err) < 0)
		fail_msg("%s", err.message);
	sandbox_record_fini(&draft);
	return sandbox;
}

enum sandbox_status world_status(struct sandbox *sandbox)
{
	struct sandbox_record record;

	sandbox_read(sandbox, &record);
	sandbox_record_fini(&record);
	return record.status;
}

bool world_row(struct world *world, const char *id, struct sandbox_record *ret_record)
{
	struct err err;

	return store_sandbox_get(world->store, NULL, id, ret_record, &err) == 0;
}

bool world_has_row(struct world *world, const char *id)
{
	struct sandbox_record record;
	bool found = world_row(world, id, &record);

	if (found)
		sandbox_record_fini(&record);
	return found;
}

bool world_has_workspace(struct world *world, const char *id)
{
	struct workspace_record record;
	struct err err;

	return store_workspace_get(world->store, NULL, id, &record, &err) == 0;
}

void world_assert_agree(struct world *world, const char *id)
{
	struct sandbox_record record;
	struct virtual_proc machine;

	fake_look(&world->driver, id, &machine);
	if (!world_row(world, id, &record)) {
		assert_false(machine.running);
		assert_false(machine.has_layer);
		return;
	}
	assert_int_equal(machine.running,
		record.status == SANDBOX_RUNNING || record.status == SANDBOX_PAUSED);
	assert_int_equal(machine.frozen, record.status == SANDBOX_PAUSED);
	sandbox_record_fini(&record);
}

/* --- events --- */

static struct timespec deadline(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += DEADLINE_MS / 1000;
	return ts;
}

static void note_event(struct listener *listener, const char *type, uint64_t sequence)
{
	pthread_mutex_lock(&listener->lock);
	if (listener->count < array_len(listener->types)) {
		snprintf(listener->types[listener->count], sizeof(listener->types[0]), "%s", type);
		listener->sequences[listener->count++] = sequence;
	}
	pthread_cond_broadcast(&listener->changed);
	pthread_mutex_unlock(&listener->lock);
}

static void on_event(void *arg, const struct event *event)
{
	note_event(arg, event->type, event->sequence);
}

static void on_over(void *arg)
{
	note_event(arg, "over", 0);
}

void world_listener_open(struct listener *listener, struct engine *engine, const char *id)
{
	struct sandbox *sandbox;
	struct err err;

	*listener = (struct listener){.engine = engine};
	pthread_mutex_init(&listener->lock, NULL);
	pthread_cond_init(&listener->changed, NULL);
	if (sandbox_get(engine, NULL, id, &sandbox, &err) < 0)
		fail_msg("%s", err.message);
	listener->subscription = engine_subscribe(sandbox, on_event, on_over, listener);
	sandbox_unref(sandbox);
}

void listener_close(struct listener *listener)
{
	engine_unsubscribe(listener->engine, listener->subscription);
	pthread_mutex_destroy(&listener->lock);
	pthread_cond_destroy(&listener->changed);
}

/* The next event of that type; the lock is held. */
static bool advance(struct listener *listener, const char *type)
{
	while (listener->taken < listener->count) {
		if (strcmp(listener->types[listener->taken++], type) == 0)
			return true;
	}
	return false;
}

void listener_wait(struct listener *listener, const char *type)
{
	struct timespec until = deadline();
	bool found;
	int waited = 0;

	pthread_mutex_lock(&listener->lock);
	while (!(found = advance(listener, type)) && waited == 0)
		waited = pthread_cond_timedwait(&listener->changed, &listener->lock, &until);
	pthread_mutex_unlock(&listener->lock);
	if (!found)
		fail_msg("the event %s did not come", type);
}
