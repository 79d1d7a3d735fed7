/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of core_fixture.h, and the agents behind it. */
#include "base/fd.h"
#include "core_fixture.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

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

void wire_hello(int fd, uint32_t version, const uint32_t *ids, uint32_t count)
{
	struct buf payload = BUF_INIT(AGENT_UP_MAX);

	pack_u32(&payload, version);
	pack_u32(&payload, count);
	for (uint32_t i = 0; i < count; i++)
		pack_u32(&payload, ids[i]);
	wire_write(fd, AGENT_HELLO, 0, payload.data, payload.len);
	buf_fini(&payload);
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
		if (kind == AGENT_ATTACH)
			wire_hello(server.fd, AGENT_VERSION, NULL, 0);
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

/* A link to an agent of the kind that is asked for. The lock is held. */
static int connect_agent(struct fake_driver *driver, struct machine *machine, bool is_new)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	machine->peer = pair[1];
	if (driver->agent == FAKE_AGENT_DIES)
		shutdown(machine->peer, SHUT_RDWR);
	else if (driver->agent == FAKE_AGENT_LIES)
		wire_hello(machine->peer, 99, NULL, 0);
	else if (driver->agent == FAKE_AGENT_MANUAL && is_new)
		wire_hello(machine->peer, AGENT_VERSION, NULL, 0);
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

/* Walls of which one is missing. */
static void describe_walls(struct walls *walls, const char *seccomp)
{
	*walls = (struct walls){0};
	snprintf(walls->how[WALL_SECCOMP], WALL_HOW_MAX, "%s", seccomp);
}

static int fake_start(struct driver *base, const struct driver_spec *spec, int *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_START, spec->id, &machine, err);

	if (r == 0) {
		driver->starts_twice += machine->running;
		machine->slot = spec->slot;
		machine->running = machine->has_layer = machine->has_workspace = true;
		machine->dead = machine->frozen = false;
		*ret_link = connect_agent(driver, machine, true);
		describe_walls(ret_walls,
			spec->profile == TEMPLATE_PROFILE_BROWSER ? "browser" : "default");
	}
	return leave(driver, machine, r);
}

static int fake_adopt(struct driver *base, const char *id, int *ret_link, struct walls *ret_walls,
	struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_ADOPT, id, &machine, err);

	if (r == 0 && !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	if (r == 0) {
		drop_peer(driver, machine);
		*ret_link = connect_agent(driver, machine, false);
		describe_walls(ret_walls, "default");
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
				.cause = driver->cause,
				.last = driver->stats};
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

static int fake_resize(struct driver *base, const char *id, uint64_t disk_bytes, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct machine *machine;
	int r = enter(driver, FAKE_RESIZE, id, &machine, err);

	if (r == 0 && !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	if (r == 0)
		machine->disk_bytes = disk_bytes;
	return leave(driver, machine, r);
}

static int fake_stats(
	struct driver *base, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	struct fake_driver *driver = fake_from(base);

	(void)id;
	(void)err;
	pthread_mutex_lock(&driver->lock);
	*ret_stats = driver->stats;
	pthread_mutex_unlock(&driver->lock);
	return 0;
}

static int fake_usage(
	struct driver *base, const char *id, struct driver_usage *ret_usage, struct err *err)
{
	(void)base;
	(void)id;
	(void)err;
	*ret_usage = (struct driver_usage){0};
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

/* Ways that nobody comes by. */
static int fake_open_exits(
	struct driver *base, const char *id, struct driver_exits *ret_exits, struct err *err)
{
	int dns = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int stream = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int proxy[2];

	(void)id;
	if (dns < 0 || stream < 0 || listen(stream, 1) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, proxy) < 0)
		return err_sys(err, "make the sockets of a way out");
	fake_from(base)->exit_peer = proxy[1];
	*ret_exits = (struct driver_exits){proxy[0], dns, stream, false};
	return 0;
}

static const struct driver_ops fake_ops = {
	.name = "fake",
	.start = fake_start,
	.adopt = fake_adopt,
	.stop = fake_stop,
	.freeze = fake_freeze,
	.stats = fake_stats,
	.usage = fake_usage,
	.resize = fake_resize,
	.clean = fake_clean,
	.list = fake_list,
	.open_exits = fake_open_exits,
};

void fake_init(struct fake_driver *driver)
{
	*driver = (struct fake_driver){.base.ops = &fake_ops};
	pthread_mutex_init(&driver->lock, NULL);
}

void fake_fini(struct fake_driver *driver)
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
