/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"

#include "base/fd.h"
#include "container_driver.h"
#include "core_fixture.h"
#include "driver/driver_table.h"
#include "driver/native/keeper_client.h"
#include "wire/agent.h"
#include "wire/keeper.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- native: a keeper of its own, on a data directory of its own --- */

#define START_MS 120000

static struct {
	char dir[64];
	char socket[80];
	pid_t keeper;
} native;

static void run_keeper(int listener)
{
	char *argv[] = {(char *)getenv("SANDLOT_KEEPER"), native.dir, (char *)"0",
		(char *)getenv("SANDLOT_AGENT"), NULL};
	char *environment[] = {(char *)KEEPER_ALLOW_MISSING "=0", NULL};

	/* A suite that fails early must not leave it. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 ||
		(listener == 3 ? fcntl(listener, F_SETFD, 0) : dup2(listener, 3)) < 0)
		_exit(1);
	close_range(4, ~0u, 0);
	execve(argv[0], argv, environment);
	_exit(1);
}

static void begin_native(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (geteuid() != 0)
		fail_msg("not proven: the keeper needs root");
	if (!getenv("SANDLOT_KEEPER") || !getenv("SANDLOT_AGENT"))
		fail_msg("SANDLOT_KEEPER and SANDLOT_AGENT name the two programs");
	snprintf(native.dir, sizeof(native.dir), "/tmp/sandlot-contract-XXXXXX");
	assert_non_null(mkdtemp(native.dir));
	snprintf(native.socket, sizeof(native.socket), "%s/run", native.dir);
	assert_int_equal(mkdir(native.socket, 0700), 0);
	snprintf(native.socket, sizeof(native.socket), "%s/run/keeper.sock", native.dir);
	memcpy(address.sun_path, native.socket, sizeof(native.socket));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 16), 0);
	native.keeper = fork();
	assert_true(native.keeper >= 0);
	if (native.keeper == 0)
		run_keeper(listener);
	close(listener);
	/* On a busy machine a keeper may take longer to start than a driver waits for an answer. */
	assert_int_equal(keeper_client_ask(native.socket, START_MS), 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* The suite has shut it down, or failed. */
static void finish_native(void)
{
	int status = -1;

	kill(native.keeper, SIGTERM);
	assert_int_equal(waitpid(native.keeper, &status, 0), native.keeper);
	assert_int_equal(status, 0);
	assert_int_equal(nftw(native.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static struct driver *open_native(void)
{
	const struct driver_config config = {.data_dir = native.dir, .limits_disk = true};
	const struct driver_kind *kind;
	struct driver *driver = NULL;
	struct err err = {0};

	assert_int_equal(driver_table_find("native", &kind, &err), 0);
	if (kind->open(&config, &driver, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(driver->capabilities, kind->capabilities);
	return driver;
}

static void close_driver(struct driver *driver)
{
	driver->ops->close(driver);
}

/* In the directory that the keeper looks into. */
static void put_native_file(const char *project, const char *name, const char *text)
{
	char path[200], file[240];

	snprintf(path, sizeof(path), "%s/" KEEPER_PROJECT_FILES, native.dir, project);
	for (char *at = path + strlen(native.dir) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*at = '/';
	}
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(file, sizeof(file), "%s/%s", path, name);
	fd_close(creat(file, 0644));
	assert_int_equal(fd_write_file(AT_FDCWD, file, text), 0);
}

/* --- fake: the driver of the unit tests of core --- */

static struct fake_driver fake;

static void begin_fake(void)
{
	fake_init(&fake);
	fake.step = "is played";
}

static void finish_fake(void)
{
	fake_fini(&fake);
}

static struct driver *open_fake(void)
{
	return &fake.base;
}

static void close_fake(struct driver *driver)
{
	(void)driver;
}

static const struct subject subjects[] = {
	{"container", true, false, 2, container_engine_begin, container_engine_finish,
		container_driver_open, close_driver},
	{"fake", false, false, 1, begin_fake, finish_fake, open_fake, close_fake},
	{"native", true, true, 0, begin_native, finish_native, open_native, close_driver,
		put_native_file},
};

const struct subject *subject_find(const char *name)
{
	for (size_t i = 0; i < array_len(subjects); i++) {
		if (strcmp(subjects[i].name, name) == 0)
			return &subjects[i];
	}
	return NULL;
}

struct driver_spec subject_spec(const char *id)
{
	static const struct owner owner = {.organization = "org", .user = "user"};

	return (struct driver_spec){.id = id,
		.hostname = "box",
		.template_name = "host",
		.stack = "",
		.image = {.reference = "", .digest = ""},
		.owner = &owner,
		.project = "",
		.session = "",
		.resources = {.cpu_millis = 1000,
			.memory_bytes = SUBJECT_MEMORY,
			.disk_bytes = SUBJECT_DISK,
			.pids = SUBJECT_PIDS}};
}

/* --- an agent --- */

static void read_fully(int link, void *data, size_t len)
{
	int r = fd_read_full(link, data, len);

	if (r < 0)
		fail_msg("the link ended, or nothing came: %s", strerror(-r));
}

/* The next frame; its payload is static. */
static struct frame next_frame(int link)
{
	static uint8_t payload[AGENT_UP_MAX];
	uint8_t header[FRAME_HEADER_LEN];
	struct unpack in = UNPACK_INIT(header, sizeof(header));
	struct frame frame = {.payload = payload};

	assert_int_equal(fd_set_timeout(link, SUBJECT_PATIENCE_MS), 0);
	read_fully(link, header, sizeof(header));
	frame.len = unpack_u32(&in);
	frame.kind = unpack_u16(&in);
	(void)unpack_u16(&in);
	frame.id = unpack_u32(&in);
	assert_true(frame.len <= sizeof(payload));
	read_fully(link, payload, frame.len);
	return frame;
}

uint32_t subject_greet(int link)
{
	struct buf version = BUF_INIT(4);
	struct frame hello;
	struct unpack in;
	uint32_t count;

	pack_u32(&version, AGENT_VERSION);
	wire_write(link, AGENT_ATTACH, 0, version.data, version.len);
	buf_fini(&version);
	hello = next_frame(link);
	assert_int_equal(hello.kind, AGENT_HELLO);
	in = UNPACK_INIT(hello.payload, hello.len);
	assert_int_equal(unpack_u32(&in), AGENT_VERSION);
	count = unpack_u32(&in);
	assert_false(in.bad);
	return count;
}

void subject_begin(int link, uint32_t number, const char *line)
{
	subject_begin_as(link, number, 0, line);
}

void subject_begin_as(int link, uint32_t number, uint32_t flags, const char *line)
{
	struct buf exec = BUF_INIT(AGENT_DOWN_MAX);

	pack_u32(&exec, flags);
	pack_u32(&exec, 0); /* uid, gid */
	pack_u32(&exec, 0);
	pack_u16(&exec, 0);
	pack_u16(&exec, 0);
	pack_str(&exec, "/");
	pack_u32(&exec, 3);
	pack_str(&exec, "/bin/sh");
	pack_str(&exec, "-c");
	pack_str(&exec, line);
	pack_u32(&exec, 1);
	pack_str(&exec, "PATH=/usr/bin:/bin");
	pack_u32(&exec, 0); /* groups */
	wire_write(link, AGENT_EXEC, number, exec.data, exec.len);
	buf_fini(&exec);
}

#define OUTPUT_HEAD 13 /* offset, stream and age before the bytes of AGENT_OUTPUT */

/* Adds the bytes of a frame of output to a text. */
static void add_output(const struct frame *frame, char *text, size_t size)
{
	size_t at = strlen(text), len = frame->len - OUTPUT_HEAD;

	assert_true(frame->len >= OUTPUT_HEAD && at + len < size);
	memcpy(text + at, frame->payload + OUTPUT_HEAD, len);
	text[at + len] = '\0';
}

void subject_await_output(int link, uint32_t number, const char *text)
{
	char output[4096] = "";

	while (!strstr(output, text)) {
		struct frame frame = next_frame(link);

		if (frame.id == number && frame.kind == AGENT_OUTPUT)
			add_output(&frame, output, sizeof(output));
		else if (frame.id == number &&
			 (frame.kind == AGENT_EXITED || frame.kind == AGENT_FAILED))
			fail_msg("it ended before it said \"%s\": %s", text, output);
	}
}

const char *subject_run(int link, uint32_t number, const char *line, int *ret_status)
{
	static char output[4096];
	struct frame frame;
	struct unpack in;

	output[0] = '\0';
	subject_begin(link, number, line);
	do {
		frame = next_frame(link);
		if (frame.id != number)
			continue;
		if (frame.kind == AGENT_OUTPUT)
			add_output(&frame, output, sizeof(output));
		assert_int_not_equal(frame.kind, AGENT_FAILED);
	} while (frame.id != number || frame.kind != AGENT_EXITED);
	in = UNPACK_INIT(frame.payload, frame.len);
	*ret_status = (int)unpack_u32(&in);
	wire_write(link, AGENT_FORGET, number, NULL, 0);
	return output;
}

void subject_expect_end(int link)
{
	uint8_t dropped[4096];
	ssize_t n;

	assert_int_equal(fd_set_timeout(link, SUBJECT_PATIENCE_MS), 0);
	do
		n = recv(link, dropped, sizeof(dropped), 0);
	while (n > 0);
	if (n < 0 && errno == EAGAIN)
		fail_msg("the link does not end");
}
