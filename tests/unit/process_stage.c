/* SPDX-License-Identifier: Apache-2.0 */
#include "process_stage.h"

#include "core/engine/db_writer.h"
#include "core/output/output_cursor.h"
#include "core/process/process_state.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- the watcher --- */

static void heard_started(void *arg, uint32_t pid)
{
	struct heard *heard = arg;

	pthread_mutex_lock(&heard->lock);
	heard->starts++;
	heard->pid = pid;
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

static void heard_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct heard *heard = arg;

	if (heard->at_output)
		heard->at_output(heard, data, len);
	pthread_mutex_lock(&heard->lock);
	buf_append(&heard->streams[stream - 1], data, len);
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

static void heard_drained(void *arg)
{
	struct heard *heard = arg;

	pthread_mutex_lock(&heard->lock);
	heard->drains++;
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

static void heard_ended(void *arg, const struct process_end *end)
{
	struct heard *heard = arg;

	if (heard->at_end)
		heard->at_end(heard);
	pthread_mutex_lock(&heard->lock);
	heard->ends++;
	heard->end = *end;
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

static void heard_release(void *arg)
{
	struct heard *heard = arg;

	pthread_mutex_lock(&heard->lock);
	heard->releases++;
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

const struct process_events heard_events = {
	.started = heard_started,
	.output = heard_output,
	.drained = heard_drained,
	.ended = heard_ended,
	.release = heard_release,
};

void heard_init(struct heard *heard)
{
	*heard = (struct heard){0};
	pthread_mutex_init(&heard->lock, NULL);
	pthread_cond_init(&heard->changed, NULL);
	heard->streams[0] = heard->streams[1] = BUF_INIT(16u << 20);
}

void heard_fini(struct heard *heard, unsigned watches)
{
	struct timespec until = world_deadline();
	int waited = 0;

	pthread_mutex_lock(&heard->lock);
	while (heard->releases < watches && waited == 0)
		waited = pthread_cond_timedwait(&heard->changed, &heard->lock, &until);
	assert_int_equal(heard->releases, watches);
	pthread_mutex_unlock(&heard->lock);
	buf_fini(&heard->streams[0]);
	buf_fini(&heard->streams[1]);
	pthread_mutex_destroy(&heard->lock);
	pthread_cond_destroy(&heard->changed);
}

void heard_watch(struct heard *heard, struct process *process)
{
	assert_true(process_watch(process, &heard_events, heard));
}

void heard_wait(struct heard *heard, bool (*is_so)(const struct heard *heard))
{
	struct timespec until = world_deadline();
	int waited = 0;
	bool so;

	pthread_mutex_lock(&heard->lock);
	while (!(so = is_so(heard)) && waited == 0)
		waited = pthread_cond_timedwait(&heard->changed, &heard->lock, &until);
	pthread_mutex_unlock(&heard->lock);
	assert_true(so);
}

void heard_wait_output(struct heard *heard, int stream, size_t len)
{
	struct timespec until = world_deadline();
	int waited = 0;

	pthread_mutex_lock(&heard->lock);
	while (heard->streams[stream - 1].len < len && waited == 0)
		waited = pthread_cond_timedwait(&heard->changed, &heard->lock, &until);
	assert_int_equal(heard->streams[stream - 1].len, len);
	pthread_mutex_unlock(&heard->lock);
}

bool has_started(const struct heard *heard)
{
	return heard->starts > 0;
}

bool has_ended(const struct heard *heard)
{
	return heard->ends > 0;
}

/* --- the stage --- */

static void new_process(struct stage *stage)
{
	struct err err = {0};

	heard_init(&stage->heard);
	if (process_new(stage->sandbox, &stage->process, &err) < 0)
		fail_msg("%s", err.message);
}

void stage_init(struct stage *stage, struct world *world)
{
	fake_set_agent(&world->driver, FAKE_AGENT_MANUAL);
	stage_enter(stage, world, world_create(world, ""));
}

void stage_enter(struct stage *stage, struct world *world, struct sandbox *sandbox)
{
	struct wire_frame frame;

	*stage = (struct stage){.world = world, .sandbox = sandbox};
	/* One of our own: the driver closes its when it ends the sandbox. */
	stage->peer = dup(fake_peer(&world->driver, sandbox_id(stage->sandbox)));
	wire_expect(stage->peer, AGENT_ATTACH, &frame);
	new_process(stage);
}

void stage_join(struct stage *stage, struct stage *other)
{
	*stage = (struct stage){.world = other->world,
		.sandbox = sandbox_ref(other->sandbox),
		.peer = dup(other->peer)};
	new_process(stage);
}

void stage_leave(struct stage *stage, bool ran)
{
	if (ran)
		heard_wait(&stage->heard, has_ended);
	heard_fini(&stage->heard, stage->is_watched ? 1 : 0);
	assert_int_equal(stage->heard.ends, ran ? 1 : 0);
	process_unref(stage->process);
	sandbox_unref(stage->sandbox);
	close(stage->peer);
}

void stage_fini(struct stage *stage, bool ran)
{
	struct err err;

	assert_int_equal(sandbox_delete(stage->sandbox, END_OPERATOR, &err), 0);
	stage_leave(stage, ran);
}

struct process_spec stage_spec(void)
{
	static const char *const argv[] = {"cat", "-u", NULL};
	static const char *const env[] = {"A=1", NULL};

	return (struct process_spec){
		.argv = argv, .env = env, .cwd = "/workspace", .uid = 1000, .gid = 1001};
}

int stage_try(struct stage *stage, const struct process_spec *spec, struct err *err)
{
	heard_watch(&stage->heard, stage->process);
	stage->is_watched = true;
	return process_run(stage->process, spec, err);
}

void stage_run(struct stage *stage, const struct process_spec *spec)
{
	struct wire_frame frame;
	struct err err = {0};

	if (stage_try(stage, spec, &err) < 0)
		fail_msg("%s", err.message);
	wire_expect(stage->peer, AGENT_EXEC, &frame);
	stage->id = frame.id;
}

void stage_start(struct stage *stage, bool is_kept)
{
	struct process_spec spec = stage_spec();

	spec.is_kept = is_kept;
	stage_run(stage, &spec);
	say_started(stage, 40 + stage->id);
	heard_wait(&stage->heard, has_started);
}

/* --- what the agent says --- */

void say_started(struct stage *stage, uint32_t pid)
{
	struct buf payload = BUF_INIT(16);

	pack_u32(&payload, pid);
	wire_write(stage->peer, AGENT_STARTED, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

void say_failed(struct stage *stage, uint8_t at, uint32_t errnum)
{
	struct buf payload = BUF_INIT(16);

	pack_u8(&payload, at);
	pack_u32(&payload, errnum);
	wire_write(stage->peer, AGENT_FAILED, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

static void say_bytes(struct stage *stage, uint64_t offset, uint8_t stream, uint32_t age_ms,
	const void *data, size_t len)
{
	struct buf payload = BUF_INIT(AGENT_UP_MAX);

	pack_u64(&payload, offset);
	pack_u8(&payload, stream);
	pack_u32(&payload, age_ms);
	buf_append(&payload, data, len);
	wire_write(stage->peer, AGENT_OUTPUT, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

void say_output(struct stage *stage, uint64_t offset, uint8_t stream, size_t len)
{
	static const uint8_t zeros[AGENT_OUTPUT_CHUNK];
	size_t done = 0;

	do {
		size_t part = len - done < sizeof(zeros) ? len - done : sizeof(zeros);

		say_bytes(stage, offset + done, stream, 0, zeros, part);
		done += part;
	} while (done < len);
}

void say_text(struct stage *stage, uint64_t offset, uint8_t stream, const char *text)
{
	say_bytes(stage, offset, stream, 0, text, strlen(text));
}

void say_old_text(struct stage *stage, uint64_t offset, uint32_t age_ms, const char *text)
{
	say_bytes(stage, offset, 1, age_ms, text, strlen(text));
}

void say_taken(struct stage *stage, uint64_t taken, uint64_t received)
{
	struct buf payload = BUF_INIT(16);

	pack_u64(&payload, taken);
	pack_u64(&payload, received);
	wire_write(stage->peer, AGENT_STDIN_ACK, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

void say_survivors(struct stage *stage, uint32_t count)
{
	struct buf payload = BUF_INIT(16);

	pack_u32(&payload, count);
	wire_write(stage->peer, AGENT_SURVIVORS, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

void say_exited_with(struct stage *stage, struct exit_words words)
{
	struct buf payload = BUF_INIT(1024);

	pack_u32(&payload, words.status);
	pack_u64(&payload, words.end_offset);
	pack_u64(&payload, 11); /* cpu us */
	pack_u64(&payload, 22); /* peak bytes */
	pack_u64(&payload, 33); /* duration us */
	pack_u32(&payload, words.oom_kills);
	pack_u32(&payload, words.refused_forks);
	pack_u32(&payload, words.flags);
	pack_u32(&payload, words.denied_count);
	for (uint32_t i = 0; i < words.denied_count; i++) {
		pack_u32(&payload, words.denied + i);
		pack_u32(&payload, i + 1);
	}
	wire_write(stage->peer, AGENT_EXITED, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

void say_exited(struct stage *stage, uint32_t status, uint64_t end_offset)
{
	say_exited_with(stage, (struct exit_words){.status = status, .end_offset = end_offset});
}

/* --- what it hears --- */

uint32_t expect_kind(struct stage *stage, uint16_t kind)
{
	struct wire_frame frame;

	wire_expect(stage->peer, kind, &frame);
	assert_int_equal(frame.id, stage->id);
	return frame.len;
}

void expect_signal(struct stage *stage, int signal, bool whole_tree)
{
	struct wire_frame frame;
	struct unpack in = UNPACK_INIT(frame.payload, 5);

	wire_expect(stage->peer, AGENT_SIGNAL, &frame);
	assert_int_equal(frame.id, stage->id);
	assert_int_equal(frame.len, 5);
	assert_int_equal(unpack_u32(&in), signal);
	assert_int_equal(unpack_u8(&in), whole_tree);
}

void expect_kill(struct stage *stage)
{
	expect_signal(stage, SIGKILL, true);
}

void expect_ack(struct stage *stage, uint64_t offset)
{
	struct wire_frame frame;
	struct unpack in = UNPACK_INIT(frame.payload, 8);

	wire_expect(stage->peer, AGENT_ACK, &frame);
	assert_int_equal(frame.id, stage->id);
	assert_int_equal(frame.len, 8);
	assert_int_equal(unpack_u64(&in), offset);
}

void expect_forget(struct stage *stage)
{
	assert_int_equal(expect_kind(stage, AGENT_FORGET), 0);
}

/* --- what is written --- */

bool stage_row(struct stage *stage, struct process_record *ret_record)
{
	struct err err;

	return store_process_get(stage->world->store, sandbox_id(stage->sandbox), stage->id,
		       ret_record, &err) == 0;
}

static bool is_listed(struct stage *stage)
{
	struct process *process = stage->sandbox->processes;

	while (process && process->record.number != stage->id)
		process = process->next;
	return process != NULL;
}

void stage_await_unlisted(struct stage *stage)
{
	struct sandbox *sandbox = stage->sandbox;
	struct timespec until;
	int waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	pthread_mutex_lock(&sandbox->state);
	while (is_listed(stage) && waited == 0)
		waited = pthread_cond_timedwait(&sandbox->changed, &sandbox->state, &until);
	pthread_mutex_unlock(&sandbox->state);
	assert_int_equal(waited, 0);
}

static void post(void *arg)
{
	sem_post(arg);
}

void world_flush(struct world *world)
{
	sem_t done;

	sem_init(&done, 0, 0);
	db_writer_put(world->engine->db_writer, post, &done);
	world_await(&done);
	sem_destroy(&done);
}

char *read_log(struct output_log *log)
{
	struct output_cursor *cursor = output_cursor_new(log, 0);
	struct buf all = BUF_INIT(16u << 20);
	struct output_piece piece;
	char data[4096];

	do {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		if (piece.kind == OUTPUT_CUT)
			buf_append_str(&all, "[cut]");
		else if (piece.kind != OUTPUT_NONE)
			buf_append(&all, data, piece.next - piece.offset);
	} while (piece.kind != OUTPUT_NONE);
	output_cursor_free(cursor);
	return buf_take_str(&all);
}

void assert_log(struct output_log *log, const char *expected)
{
	auto_free char *text = read_log(log);

	assert_string_equal(text, expected);
}
