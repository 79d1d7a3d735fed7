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
static struct virtual_proc *find(struct fake_driver *driver, const char *id)
{
	struct virtual_proc *machine = driver->machines;

	while (machine && strcmp(machine->id, id) != 0)
		machine = machine->next;
	return machine;
}

static struct virtual_proc *find_or_add(struct fake_driver *driver, const char *id)
{
	struct virtual_proc *machine = find(driver, id);

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
	struct virtual_proc **ret_machine, struct err *err)
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
	if (driver->is_in_trouble) {
		r = err_explain(err, ERR_UNAVAILABLE, DRIVER_SERVES_NOBODY, NULL,
			"the driver serves nobody");
	} else if (driver->fail[op] > 0) {
		driver->fail[op]--;
		r = err_set(err, ERR_UNAVAILABLE, "the driver was told to fail");
	}
	return r;
}

static int leave(struct fake_driver *driver, struct virtual_proc *machine, int r)
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
static struct driver_link connect_agent(
	struct fake_driver *driver, struct virtual_proc *machine, bool is_new)
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
	machine->link_number = ++driver->links;
	return (struct driver_link){pair[0], machine->link_number};
}

/* Takes the agent's end away. The lock is held, and let go of while a thread is waited for. */
static void drop_peer(struct fake_driver *driver, struct virtual_proc *machine)
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

static int fake_start(struct driver *base, const struct driver_spec *spec,
	const struct driver_progress *progress, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_START, spec->id, &machine, err);

	if (r == 0 && machine->running) {
		driver->starts_twice += !machine->is_planted;
		r = err_set(err, ERR_CONFLICT, "%s runs already", spec->id);
	}
	if (r == 0 && spec->has_files && !machine->has_workspace)
		r = err_explain(err, ERR_CONFLICT, "workspace_missing", NULL,
			"the workspace of %s is not there", spec->id);
	if (r == 0) {
		if (driver->step)
			driver_report(progress, driver->step, 500);
		machine->running = machine->has_layer = machine->has_workspace = true;
		machine->dead = machine->frozen = false;
		snprintf(driver->started_for, sizeof(driver->started_for), "%s/%s/%s/%s",
			spec->owner->organization, spec->owner->user, spec->project, spec->session);
		*ret_link = connect_agent(driver, machine, true);
		describe_walls(ret_walls, template_profile_name(spec->profile));
	}
	return leave(driver, machine, r);
}

static int fake_adopt(struct driver *base, const char *id, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
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
	struct virtual_proc *machine;
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
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_FREEZE, id, &machine, err);

	if (r == 0 && !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	if (r == 0)
		machine->frozen = freeze;
	return leave(driver, machine, r);
}

static int fake_set_limits(struct driver *base, const char *id, const struct resources *resources,
	bool is_background, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_RESIZE, id, &machine, err);

	(void)resources;
	(void)is_background;
	if (r == 0 && !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	return leave(driver, machine, r);
}

static int fake_resize(struct driver *base, const char *id, uint64_t disk_bytes,
	uint64_t growth_bytes, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_RESIZE, id, &machine, err);

	if (r == 0 && !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	if (r == 0)
		machine->disk_bytes = disk_bytes;
	if (r == 0)
		machine->growth_bytes = growth_bytes;
	return leave(driver, machine, r);
}

static int fake_stats(
	struct driver *base, const char *id, struct driver_stats *ret_stats, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	const struct virtual_proc *machine;
	int r = 0;

	pthread_mutex_lock(&driver->lock);
	machine = find(driver, id);
	if (machine && machine->running) {
		*ret_stats = driver->stats;
		ret_stats->memory_held_bytes = machine->memory_bytes;
	} else {
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	}
	pthread_mutex_unlock(&driver->lock);
	return r;
}

static int fake_usage(
	struct driver *base, const char *id, struct driver_usage *ret_usage, struct err *err)
{
	(void)id;
	(void)err;
	*ret_usage = (struct driver_usage){.bytes = atomic_load(&fake_from(base)->used_bytes)};
	return 0;
}

static int fake_clean(struct driver *base, const char *id, unsigned parts, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_CLEAN, id, &machine, err);

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

/* Afterwards a start that failed for it works. */
static int fake_check_disk(struct driver *base, const char *id, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_CHECK_DISK, id, &machine, err);

	if (r == 0) {
		driver->cause = (struct err){0};
		driver->agent = FAKE_AGENT_SERVES;
	}
	return leave(driver, machine, r);
}

static int fake_list_failed(struct driver *base, char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	int count;

	(void)err;
	pthread_mutex_lock(&driver->lock);
	count = driver->failed ? 1 : 0;
	if (count)
		snprintf(ids[0], ID_LEN + 1, "%s", driver->failed);
	pthread_mutex_unlock(&driver->lock);
	return count;
}

static int fake_list(struct driver *base, bool stored, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *unused;
	char last[ID_LEN + 1];
	int count = 0;
	int r = enter(driver, FAKE_LIST, "list", &unused, err);

	snprintf(last, sizeof(last), "%s", after);
	while (r == 0 && count < DRIVER_PAGE) {
		const struct virtual_proc *best = NULL;

		for (const struct virtual_proc *m = driver->machines; m; m = m->next) {
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

static int fake_is_stored(struct driver *base, const char *id, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	struct virtual_proc *machine;
	int r = enter(driver, FAKE_IS_STORED, id, &machine, err);

	if (r == 0)
		r = machine->has_layer || machine->has_workspace;
	return leave(driver, machine, r);
}

/* Ways that nobody comes by. */
static int fake_open_egress_sockets(struct driver *base, const char *id,
	struct driver_egress_sockets *ret_sockets, struct err *err)
{
	struct virtual_proc machine;
	int dns, stream, proxy[2];

	if (!fake_look(fake_from(base), id, &machine) || !machine.running)
		return err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	dns = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	stream = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (dns < 0 || stream < 0 || listen(stream, 1) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, proxy) < 0)
		return err_sys(err, "make the sockets of a way out");
	fake_from(base)->exit_peer = proxy[1];
	*ret_sockets = (struct driver_egress_sockets){proxy[0], dns, stream, false};
	return 0;
}

/* The agent's end goes to the test that waits for it; else it is closed, as by one that has no room. */
static int fake_open_channel(struct driver *base, const char *id, uint64_t link_number,
	const void *first, size_t len, int *ret_fd, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	const struct virtual_proc *machine;
	int pair[2], r = 0;

	pthread_mutex_lock(&driver->lock);
	machine = find(driver, id);
	if (!machine || !machine->running)
		r = err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	else if (machine->link_number != link_number)
		r = err_set(err, ERR_CONFLICT, "%s has another link", id);
	if (r == 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
			send(pair[0], first, len, MSG_NOSIGNAL) != (ssize_t)len)
			abort();
		*ret_fd = pair[0];
		if (driver->channel_taker >= 0)
			driver->channel_taker =
				write(driver->channel_taker, &pair[1], sizeof(int)) < 0
					? -1
					: driver->channel_taker;
		else
			close(pair[1]);
	}
	pthread_mutex_unlock(&driver->lock);
	return r;
}

/* Nothing listens in a sandbox that is played. */
static int fake_dial(struct driver *base, const char *id, uint16_t port, int timeout_ms,
	int *ret_fd, struct err *err)
{
	struct virtual_proc machine;

	(void)timeout_ms;
	(void)ret_fd;
	if (!fake_look(fake_from(base), id, &machine) || !machine.running)
		return err_set(err, ERR_NOT_FOUND, "%s does not run", id);
	return driver_explain_port(id, port, -ECONNREFUSED, err);
}

static int fake_shutdown(struct driver *base, struct err *err)
{
	struct fake_driver *driver = fake_from(base);

	(void)err;
	pthread_mutex_lock(&driver->lock);
	for (struct virtual_proc *machine = driver->machines; machine; machine = machine->next) {
		machine->running = machine->frozen = false;
		drop_peer(driver, machine);
	}
	pthread_mutex_unlock(&driver->lock);
	return 0;
}

static void fake_close(struct driver *base)
{
	(void)base;
}

static int fake_check(struct driver *base, struct err *err)
{
	struct fake_driver *driver = fake_from(base);
	bool is_in_trouble;

	pthread_mutex_lock(&driver->lock);
	is_in_trouble = driver->is_in_trouble && !driver->tells_late;
	pthread_mutex_unlock(&driver->lock);
	return is_in_trouble ? err_set(err, ERR_UNAVAILABLE, "the driver serves nobody") : 0;
}

static const struct driver_ops fake_ops = {
	.name = "fake",
	.start = fake_start,
	.adopt = fake_adopt,
	.stop = fake_stop,
	.freeze = fake_freeze,
	.stats = fake_stats,
	.usage = fake_usage,
	.set_limits = fake_set_limits,
	.resize = fake_resize,
	.clean = fake_clean,
	.check_disk = fake_check_disk,
	.list = fake_list,
	.is_stored = fake_is_stored,
	.list_failed = fake_list_failed,
	.open_egress_sockets = fake_open_egress_sockets,
	.open_channel = fake_open_channel,
	.dial = fake_dial,
	.check = fake_check,
	.shutdown = fake_shutdown,
	.close = fake_close,
};

void fake_init(struct fake_driver *driver)
{
	*driver = (struct fake_driver){
		.base = {.ops = &fake_ops, .capabilities = FAKE_CAPABILITIES}, .channel_taker = -1};
	pthread_mutex_init(&driver->lock, NULL);
}

void fake_fini(struct fake_driver *driver)
{
	pthread_mutex_lock(&driver->lock);
	while (driver->machines) {
		struct virtual_proc *machine = driver->machines;

		drop_peer(driver, machine);
		driver->machines = machine->next;
		free(machine);
	}
	pthread_mutex_unlock(&driver->lock);
	pthread_mutex_destroy(&driver->lock);
}

bool fake_look(struct fake_driver *driver, const char *id, struct virtual_proc *ret_machine)
{
	struct virtual_proc *machine;

	pthread_mutex_lock(&driver->lock);
	machine = find(driver, id);
	*ret_machine = machine ? *machine : (struct virtual_proc){.peer = -1};
	pthread_mutex_unlock(&driver->lock);
	return machine != NULL;
}

void fake_plant(struct fake_driver *driver, const char *id, bool running)
{
	struct virtual_proc *machine;

	pthread_mutex_lock(&driver->lock);
	machine = find_or_add(driver, id);
	machine->running = running;
	machine->is_planted = true;
	machine->has_layer = machine->has_workspace = true;
	pthread_mutex_unlock(&driver->lock);
}

void fake_lose_workspace(struct fake_driver *driver, const char *id)
{
	pthread_mutex_lock(&driver->lock);
	find_or_add(driver, id)->has_workspace = false;
	pthread_mutex_unlock(&driver->lock);
}

int fake_peer(struct fake_driver *driver, const char *id)
{
	struct virtual_proc machine;

	assert_true(fake_look(driver, id, &machine));
	assert_true(machine.peer >= 0);
	return machine.peer;
}

void fake_crash(struct fake_driver *driver, const char *id, int wait_status)
{
	struct virtual_proc *machine;

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

void fake_set_trouble(struct fake_driver *driver, bool is_in_trouble)
{
	pthread_mutex_lock(&driver->lock);
	driver->is_in_trouble = is_in_trouble;
	pthread_mutex_unlock(&driver->lock);
}

void fake_set_memory(struct fake_driver *driver, const char *id, uint64_t bytes)
{
	pthread_mutex_lock(&driver->lock);
	find_or_add(driver, id)->memory_bytes = bytes;
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
