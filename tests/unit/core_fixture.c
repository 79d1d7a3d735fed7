/* SPDX-License-Identifier: Apache-2.0 */
#include "core_fixture.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

		if (poll(&pollfd, 1, WORLD_PATIENCE_MS) == 0)
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

/* --- the driver --- */

static struct fake_driver *fake_from(struct driver *driver)
{
	return (struct fake_driver *)driver;
}

/* The lock is held. */
static struct machine *find(struct fake_driver *driver, const char *id)
{
	struct machine *machine = driver->machines;

	while (machine && strcmp(machine->id, id) != 0)
		machine = machine->next;
	return machine;
}

static struct machine *find_or_add(struct fake_driver *driver, const char *id)
{
	struct machine *machine = find(driver, id);

	if (!machine) {
		machine = mem_new(sizeof(*machine));
		snprintf(machine->id, sizeof(machine->id), "%s", id);
		machine->peer = -1;
		machine->next = driver->machines;
		driver->machines = machine;
	}
	return machine;
}

/* Every function of the driver begins with this, and ends with leave. */
static int enter(struct fake_driver *driver, enum fake_op op, const char *id,
	struct machine **ret_machine, struct err *err)
{
	void (*hook)(enum fake_op op, const char *id, void *arg);
	void *hook_arg;
	int r = 0;

	pthread_mutex_lock(&driver->lock);
	driver->calls[op]++;
	*ret_machine = find_or_add(driver, id);
	if ((*ret_machine)->busy)
		driver->overlaps++;
	(*ret_machine)->busy = true;
	hook = driver->hook;
	hook_arg = driver->hook_arg;
	pthread_mutex_unlock(&driver->lock);
	if (hook)
		hook(op, id, hook_arg);
	pthread_mutex_lock(&driver->lock);
	if (driver->fail[op] > 0) {
		driver->fail[op]--;
		r = err_set(err, ERR_UNAVAILABLE, "the driver was told to fail");
	}
	return r;
}

static int leave(struct fake_driver *driver, struct machine *machine, int r)
{
	machine->busy = false;
	pthread_mutex_unlock(&driver->lock);
	return r;
}

struct server_arg {
	struct fake_driver *driver;
	int fd;
};

static bool read_all(int fd, void *data, size_t len)
{
	return len == 0 || fd_read_full(fd, data, len) == 0;
}

/* An agent that serves: takes everything, and ends when it is asked to. */
static void *serve(void *arg)
{
	struct server_arg server = *(struct server_arg *)arg;
	uint8_t header[FRAME_HEADER_LEN];

	free(arg);
	while (read_all(server.fd, header, sizeof(header))) {
		struct unpack in = UNPACK_INIT(header, sizeof(header));
		uint32_t left = unpack_u32(&in);
		uint16_t kind = unpack_u16(&in);

		while (left > 0) {
			uint8_t rest[4096];
			uint32_t n = left < sizeof(rest) ? left : (uint32_t)sizeof(rest);

			if (!read_all(server.fd, rest, n))
				return NULL;
			left -= n;
		}
		if (kind == AGENT_SHUTDOWN) {
			pthread_mutex_lock(&server.driver->lock);
			server.driver->shutdowns++;
			pthread_mutex_unlock(&server.driver->lock);
			shutdown(server.fd, SHUT_RDWR);
			return NULL;
		}
	}
	return NULL;
}

static void say_hello(int fd, uint32_t version)
{
	struct buf payload = BUF_INIT(16);

	pack_u32(&payload, version);
	pack_u32(&payload, 0);
	wire_write(fd, AGENT_HELLO, 0, payload.data, payload.len);
	buf_fini(&payload);
}

/* A link to an agent of the kind that is asked for. The lock is held. */
static int connect_agent(struct fake_driver *driver, struct machine *machine)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	machine->peer = pair[1];
	if (driver->agent == FAKE_AGENT_DIES)
		shutdown(machine->peer, SHUT_RDWR);
	else
		say_hello(machine->peer, driver->agent == FAKE_AGENT_LIES ? 99 : AGENT_VERSION);
	machine->served = driver->agent == FAKE_AGENT_SERVES;
	if (machine->served) {
		struct server_arg *arg = mem_new(sizeof(*arg));

		*arg = (struct server_arg){.driver = driver, .fd = machine->peer};
		if (pthread_create(&machine->server, NULL, serve, arg) != 0)
			abort();
	}
	return pair[0];
}

/* Takes the agent's end away. The lock is held, and let go of while a thread is waited for. */
static void drop_peer(struct fake_driver *driver, struct machine *machine)
{
	int peer = take_fd(&machine->peer);

	if (peer < 0)
		return;
	shutdown(peer, SHUT_RDWR);
	if (machine->served) {
		machine->served = false;
		pthread_mutex_unlock(&driver->lock);
		pthread_join(machine->server, NULL);
		pthread_mutex_lock(&driver->lock);
	}
	close(peer);
}

static int fake_start(
	struct driver *base, const struct driver_spec *spec, int *ret_link, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_START, spec->id, &machine, err);

	if (r == 0) {
		driver->starts_twice += machine->running;
		machine->slot = spec->slot;
		machine->running = machine->has_layer = machine->has_workspace = true;
		machine->dead = machine->frozen = false;
		*ret_link = connect_agent(driver, machine);
	}
	return leave(driver, machine, r);
}

static int fake_adopt(struct driver *base, const char *id, int *ret_link, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_ADOPT, id, &machine, err);

	if (r == 0 && !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	if (r == 0) {
		drop_peer(driver, machine);
		*ret_link = connect_agent(driver, machine);
	}
	return leave(driver, machine, r);
}

static int fake_stop(
	struct driver *base, const char *id, struct driver_end *ret_end, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_STOP, id, &machine, err);

	if (r == 0) {
		if (ret_end)
			*ret_end = (struct driver_end){.ended = machine->dead,
				.wait_status = machine->dead ? machine->wait_status : -1,
				.cause = driver->cause};
		machine->running = machine->dead = machine->frozen = false;
		drop_peer(driver, machine);
	}
	return leave(driver, machine, r);
}

static int fake_freeze(struct driver *base, const char *id, bool freeze, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_FREEZE, id, &machine, err);

	if (r == 0)
		machine->frozen = freeze;
	return leave(driver, machine, r);
}

static int fake_stats(
	struct driver *base, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	struct fake_driver *driver = fake_from(base);

	(void)id;
	(void)err;
	pthread_mutex_lock(&driver->lock);
	*ret_stats = (struct driver_stats){.oom_kills = driver->oom_kills};
	pthread_mutex_unlock(&driver->lock);
	return 0;
}

static int fake_usage(struct driver *base, const char *id, uint64_t *ret_bytes, uint64_t *ret_files,
	struct err *err)
{
	(void)base;
	(void)id;
	(void)err;
	*ret_bytes = *ret_files = 0;
	return 0;
}

static int fake_clean(
	struct driver *base, const char *id, uint32_t slot, unsigned parts, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_CLEAN, id, &machine, err);

	(void)slot;
	if (r == 0 && machine->running)
		r = err_set(err, ERR_INTERNAL, "%s runs and cannot be cleaned", id);
	if (r == 0) {
		driver->parts |= parts;
		if (parts & DRIVER_PART_ALL)
			machine->has_layer = false;
		if (parts & DRIVER_PART_WORKSPACE)
			machine->has_workspace = false;
	}
	return leave(driver, machine, r);
}

static int fake_list(struct driver *base, bool stored, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *unused;
	char last[ID_LEN + 1];
	int count = 0;
	int r = enter(driver, FAKE_LIST, "list", &unused, err);

	snprintf(last, sizeof(last), "%s", after);
	while (r == 0 && count < DRIVER_PAGE) {
		const struct machine *best = NULL;

		for (const struct machine *m = driver->machines; m; m = m->next) {
			bool listed = stored ? m->has_layer || m->has_workspace : m->running;

			if (listed && strcmp(m->id, last) > 0 &&
				(!best || strcmp(m->id, best->id) < 0))
				best = m;
		}
		if (!best)
			break;
		memcpy(last, best->id, sizeof(last));
		memcpy(ids[count++], best->id, sizeof(best->id));
	}
	return leave(driver, unused, r < 0 ? r : count);
}

static const struct driver_ops fake_ops = {
	.name = "fake",
	.start = fake_start,
	.adopt = fake_adopt,
	.stop = fake_stop,
	.freeze = fake_freeze,
	.stats = fake_stats,
	.usage = fake_usage,
	.clean = fake_clean,
	.list = fake_list,
};

static void fake_init(struct fake_driver *driver)
{
	*driver = (struct fake_driver){.base.ops = &fake_ops};
	pthread_mutex_init(&driver->lock, NULL);
}

static void fake_fini(struct fake_driver *driver)
{
	pthread_mutex_lock(&driver->lock);
	while (driver->machines) {
		struct machine *machine = driver->machines;

		drop_peer(driver, machine);
		driver->machines = machine->next;
		free(machine);
	}
	pthread_mutex_unlock(&driver->lock);
	pthread_mutex_destroy(&driver->lock);
}

bool fake_look(struct fake_driver *driver, const char *id, struct machine *ret_machine)
{
	struct machine *machine;

	pthread_mutex_lock(&driver->lock);
	machine = find(driver, id);
	*ret_machine = machine ? *machine : (struct machine){.peer = -1};
	pthread_mutex_unlock(&driver->lock);
	return machine != NULL;
}

void fake_plant(struct fake_driver *driver, const char *id, bool running)
{
	struct machine *machine;

	pthread_mutex_lock(&driver->lock);
	machine = find_or_add(driver, id);
	machine->running = running;
	machine->has_layer = machine->has_workspace = true;
	pthread_mutex_unlock(&driver->lock);
}

int fake_peer(struct fake_driver *driver, const char *id)
{
	struct machine machine;

	assert_true(fake_look(driver, id, &machine));
	assert_true(machine.peer >= 0);
	return machine.peer;
}

void fake_crash(struct fake_driver *driver, const char *id, int wait_status)
{
	struct machine *machine;

	pthread_mutex_lock(&driver->lock);
	machine = find_or_add(driver, id);
	machine->dead = true;
	machine->wait_status = wait_status;
	shutdown(machine->peer, SHUT_RDWR);
	pthread_mutex_unlock(&driver->lock);
}

void fake_set_agent(struct fake_driver *driver, enum fake_agent agent)
{
	pthread_mutex_lock(&driver->lock);
	driver->agent = agent;
	pthread_mutex_unlock(&driver->lock);
}

void fake_set_hook(struct fake_driver *driver,
	void (*hook)(enum fake_op op, const char *id, void *arg), void *arg)
{
	pthread_mutex_lock(&driver->lock);
	driver->hook = hook;
	driver->hook_arg = arg;
	pthread_mutex_unlock(&driver->lock);
}

void fake_fail(struct fake_driver *driver, enum fake_op op, int count)
{
	pthread_mutex_lock(&driver->lock);
	driver->fail[op] = count;
	pthread_mutex_unlock(&driver->lock);
}

unsigned fake_calls(struct fake_driver *driver, enum fake_op op)
{
	unsigned calls;

	pthread_mutex_lock(&driver->lock);
	calls = driver->calls[op];
	pthread_mutex_unlock(&driver->lock);
	return calls;
}

/* --- the store's failures --- */

struct store_script store_script;

static int consult(enum store_op op, struct err *err)
{
	int left = atomic_load(&store_script.fail[op]);

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
	struct sandbox_record *record, struct err *err);
int __wrap_store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	struct sandbox_record *record, struct err *err);
int __real_store_workspace_delete(struct store *store, const char *id, struct err *err);
int __wrap_store_workspace_delete(struct store *store, const char *id, struct err *err);

int __wrap_store_sandbox_insert(struct store *store, struct sandbox_record *record, struct err *err)
{
	int r = consult(STORE_INSERT, err);

	return note(STORE_INSERT, record->id,
		r < 0 ? r : __real_store_sandbox_insert(store, record, err));
}

int __wrap_store_sandbox_update(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	int r = consult(STORE_UPDATE, err);

	return note(STORE_UPDATE, record->id,
		r < 0 ? r : __real_store_sandbox_update(store, record, err));
}

int __wrap_store_sandbox_delete(struct store *store, const char *id, struct err *err)
{
	int r = consult(STORE_DELETE, err);

	return note(STORE_DELETE, id, r < 0 ? r : __real_store_sandbox_delete(store, id, err));
}

int __wrap_store_sandbox_touch(struct store *store, const char *id, int64_t at, struct err *err)
{
	int r = consult(STORE_TOUCH, err);

	return note(STORE_TOUCH, id, r < 0 ? r : __real_store_sandbox_touch(store, id, at, err));
}

int __wrap_store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	struct sandbox_record *record, struct err *err)
{
	int r = consult(STORE_FIND, err);

	return note(STORE_FIND, project,
		r < 0 ? r : __real_store_sandbox_find(store, owner, project, record, err));
}

int __wrap_store_workspace_delete(struct store *store, const char *id, struct err *err)
{
	int r = consult(STORE_WORKSPACE_DELETE, err);

	return note(STORE_WORKSPACE_DELETE, id,
		r < 0 ? r : __real_store_workspace_delete(store, id, err));
}

static void reset_script(void)
{
	for (int op = 0; op < STORE_OP_COUNT; op++) {
		atomic_store(&store_script.fail[op], 0);
		atomic_store(&store_script.calls[op], 0);
	}
	atomic_store(&store_script.after, NULL);
}

/* --- the world --- */

int world_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

int world_setup_closed(void **state)
{
	struct world *world = mem_new(sizeof(*world));
	struct err err;

	log_open("test", LOG_ERROR + 1); /* what goes wrong here goes wrong on purpose */
	reset_script();
	world->fds_before = world_count_fds();
	snprintf(world->dir, sizeof(world->dir), "/tmp/sandlot-core-XXXXXX");
	if (!mkdtemp(world->dir))
		return -1;
	snprintf(world->database, sizeof(world->database), "%s/state.db", world->dir);
	fake_init(&world->driver);
	if (store_open(world->database, &world->store, &err) < 0)
		return -1;
	*state = world;
	return 0;
}

void world_open(struct world *world)
{
	struct engine_config config = {
		.store = world->store, .driver = &world->driver.base, .stop_grace_ms = 0};
	struct err err = {0};

	if (engine_open(&config, &world->engine, &err) < 0)
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

static void remove_dir(const char *path)
{
	static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm"};

	for (size_t i = 0; i < array_len(names); i++) {
		char *file = mem_printf("%s/%s", path, names[i]);

		unlink(file);
		free(file);
	}
	assert_int_equal(rmdir(path), 0);
}

int world_teardown(void **state)
{
	struct world *world = *state;

	engine_close(world->engine);
	assert_int_equal(world->driver.overlaps, 0);
	assert_int_equal(world->driver.starts_twice, 0);
	fake_fini(&world->driver);
	store_close(world->store);
	remove_dir(world->dir);
	assert_int_equal(world_count_fds(), world->fds_before);
	free(world);
	return 0;
}

const char *world_id(char letter)
{
	static _Thread_local char ids[4][ID_LEN + 1];
	static _Thread_local unsigned next;
	char *id = ids[next++ % array_len(ids)];

	memset(id, letter, ID_LEN);
	id[ID_LEN] = '\0';
	return id;
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
	struct machine machine;

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
	ts.tv_sec += WORLD_PATIENCE_MS / 1000;
	return ts;
}

static void on_event(void *arg, uint64_t sequence, const char *type, const char *json)
{
	struct listener *listener = arg;

	(void)json;
	pthread_mutex_lock(&listener->lock);
	if (listener->count < array_len(listener->types)) {
		snprintf(listener->types[listener->count], sizeof(listener->types[0]), "%s", type);
		listener->sequences[listener->count++] = sequence;
	}
	pthread_cond_broadcast(&listener->changed);
	pthread_mutex_unlock(&listener->lock);
}

void listener_open(struct listener *listener, struct engine *engine, const char *id)
{
	*listener = (struct listener){.engine = engine};
	pthread_mutex_init(&listener->lock, NULL);
	pthread_cond_init(&listener->changed, NULL);
	listener->subscription = engine_subscribe(engine, id, on_event, listener);
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
