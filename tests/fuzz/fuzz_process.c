/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent says about a command: frames as they come over a link, handed to process_frame. The
 * lowest bit of a frame's id chooses between the command that runs and one that is not known.
 *
 * One sandbox, over a driver that is played, serves all inputs; each input gets a command of its own.
 * It is kept or not, and paced or not, by the length of the input. The watcher asserts what process.h
 * promises whatever the agent does: one start at most, one end, nothing after it; of a paced one never more
 * output than the window; and a log that has just what was heard.
 */
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/sandbox_state.h"
#include "core/process/process.h"
#include "core/process/process_table.h"
#include "core/sandbox/sandbox.h"
#include "core/upkeep/engine_open.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct driver driver;
	struct engine *engine;
	struct sandbox *sandbox;
	int peer;
} world = {.peer = -1};

/* --- a driver for one sandbox --- */

static int start(struct driver *driver, const struct driver_spec *spec,
	const struct driver_progress *progress, struct driver_link *ret_link,
	struct walls *ret_walls, struct err *err)
{
	struct buf hello = BUF_INIT(64);
	int pair[2];

	*ret_walls = (struct walls){0};
	(void)driver;
	(void)spec;
	(void)progress;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a link");
	frame_put_header(&hello, AGENT_HELLO, 0, 8);
	pack_u32(&hello, AGENT_VERSION);
	pack_u32(&hello, 0);
	assert(write(pair[1], hello.data, hello.len) == (ssize_t)hello.len);
	buf_fini(&hello);
	world.peer = pair[1];
	*ret_link = (struct driver_link){pair[0], 1};
	return 0;
}

static int stats(struct driver *driver, const char *id, struct driver_stats *ret, struct err *err)
{
	(void)driver;
	(void)id;
	(void)err;
	*ret = (struct driver_stats){0};
	return 0;
}

static int list(struct driver *driver, bool stored, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	(void)driver;
	(void)stored;
	(void)after;
	(void)ids;
	(void)err;
	return 0;
}

static int usage(
	struct driver *driver, const char *id, struct driver_usage *ret_usage, struct err *err)
{
	(void)driver;
	(void)id;
	(void)err;
	*ret_usage = (struct driver_usage){0};
	return 0;
}

static int resize(struct driver *driver, const char *id, uint64_t disk_bytes, uint64_t growth_bytes,
	struct err *err)
{
	(void)driver;
	(void)id;
	(void)disk_bytes;
	(void)growth_bytes;
	(void)err;
	return 0;
}

static const struct driver_ops ops = {.name = "fuzz",
	.start = start,
	.stats = stats,
	.usage = usage,
	.resize = resize,
	.list = list};

static char logs_path[] = "/tmp/sandlot-fuzz-XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_logs(void)
{
	nftw(logs_path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void open_world(void)
{
	struct engine_config config = {.driver = &world.driver,
		.bus = event_bus_new(0),
		.output_max = OUTPUT_LOG_MIN_BYTES,
		.process_history = 10};
	struct sandbox_record draft;
	struct err err;

	log_open("fuzz", LOG_ERROR + 1);
	world.driver = (struct driver){.ops = &ops, .capabilities = DRIVER_BIT(DRIVER_LIVE_RESIZE)};
	sandbox_record_init(&draft);
	snprintf(draft.template_name, sizeof(draft.template_name), "host");
	draft.idle_timeout_s = draft.lifetime_s = SANDBOX_NO_LIMIT;
	if (!mkdtemp(logs_path) || atexit(remove_logs) != 0)
		abort();
	config.logs_fd = config.unfinished_fd = config.baselines_fd =
		open(logs_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store_open(":memory:", &config.store, &err) < 0 ||
		engine_open(&config, &world.engine, &err) < 0 ||
		sandbox_create(world.engine, &draft, &world.sandbox, &err) < 0)
		abort();
	sandbox_record_fini(&draft);
}

/* --- the watcher --- */

struct heard {
	unsigned starts, ends;
	uint64_t output;
	bool is_paced;
	bool is_released;
};

static void heard_started(void *arg, uint32_t pid)
{
	struct heard *heard = arg;

	(void)pid;
	assert(heard->ends == 0 && heard->starts == 0);
	heard->starts++;
}

static void heard_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct heard *heard = arg;

	assert(heard->ends == 0 && len > 0 && (stream == 1 || stream == 2));
	heard->output += len;
	/* Nothing is ever consumed here. */
	assert(!heard->is_paced || heard->output <= AGENT_OUTPUT_WINDOW);
	for (size_t i = 0; i < len; i++) /* all of it can be read */
		heard->output += data[i] & 0;
}

static void heard_ended(void *arg, const struct process_end *end)
{
	struct heard *heard = arg;

	assert(heard->ends == 0);
	assert(end->outcome <= PROCESS_REFUSED && end->how.reason < END_REASON_COUNT);
	assert(end->exit_code >= 0 && end->exit_code <= 255);
	assert(end->how.signal >= 0 && end->how.signal <= 127);
	heard->ends++;
}

static void heard_release(void *arg)
{
	struct heard *heard = arg;

	assert(!heard->is_released);
	heard->is_released = true;
}

static const struct process_events watcher = {.started = heard_started,
	.output = heard_output,
	.ended = heard_ended,
	.release = heard_release};

/* What was sent to the agent is thrown away, so that the link never fills up. */
static void drain(void)
{
	uint8_t data[65536];

	while (recv(world.peer, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
}

static void post(void *arg)
{
	sem_post(arg);
}

/* The end of a kept one is written, and then reported, by the database writer. */
static void await_writer(void)
{
	sem_t done;

	sem_init(&done, 0, 0);
	db_writer_put(world.engine->db_writer, post, &done);
	while (sem_wait(&done) < 0)
		;
	sem_destroy(&done);
}

/* Hands over one frame after the other; those that are not of the command name one that is not known. */
static void play(const uint8_t *data, size_t size, uint32_t id)
{
	while (size > 0) {
		struct frame frame;
		uint8_t *payload;
		int n = frame_next(data, size, AGENT_UP_MAX, &frame), r;

		if (n <= 0)
			break;
		/* A copy of its own for each frame, so that a read past its end is seen. */
		payload = mem_new(frame.len ? frame.len : 1);
		memcpy(payload, frame.payload, frame.len);
		frame.payload = payload;
		frame.id = frame.id & 1 ? id : id + 1;
		r = process_frame(world.sandbox, &frame);
		free(payload);
		assert(r == 0 || r == -EPROTO);
		if (r < 0)
			break; /* the link would end here */
		data += n;
		size -= (size_t)n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const argv[] = {"x", NULL}, *const env[] = {NULL};
	struct process_spec spec = {.argv = argv,
		.env = env,
		.cwd = "/",
		.input = "input",
		.input_len = 5,
		.is_kept = size & 1,
		.is_paced = size & 2};
	struct process *process;
	struct heard heard = {.is_paced = spec.is_paced};
	struct err err;

	if (!world.engine)
		open_world();
	if (process_new(world.sandbox, &process, &err) < 0 ||
		!process_watch(process, &watcher, &heard) || process_run(process, &spec, &err) < 0)
		abort();
	play(data, size, world.sandbox->next_process);
	process_table_end_all(world.sandbox, &(struct termination){.reason = END_AGENT_LOST});
	await_writer();
	assert(heard.ends == 1 && heard.is_released);
	assert(!process_log(process) || output_log_end(process_log(process)) == heard.output);
	process_unref(process);
	drain();
	return 0;
}
