/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/build_sandbox.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "base/number.h"
#include "core/engine/sandbox_state.h"
#include "core/files/file_channel.h"
#include "core/files/tar_reader.h"
#include "core/process/command.h"
#include "model/sandbox/sandbox_spec.h"
#include "wire/pack.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_MS	   200 /* between two looks whether the job must stop */
#define TAIL_LINES 4
#define LINE_LEN   1024 /* of output, in one line of the log */
#define TAIL_LEN   128
#define NAMES_MAX  (1u << 20) /* bytes of /etc/passwd and /etc/group */

int build_sandbox_open(struct engine *engine, const struct owner *owner, struct job *job,
	const struct build_sandbox_spec *spec, struct build_sandbox *ret_box, struct err *err)
{
	struct build_sandbox box = {.engine = engine, .owner = owner, .job = job};
	int r = engine->verbs->create_builder(engine, owner,
		&(struct sandbox_builder_spec){.template_name = spec->template_name,
			.image = spec->image,
			.network = spec->network,
			.allow = spec->allow,
			.resources = spec->resources},
		&box.sandbox, err);

	if (r < 0)
		return r;
	snprintf(box.id, sizeof(box.id), "%s", sandbox_id(box.sandbox));
	sandbox_enter(box.sandbox); /* it is never idle */
	*ret_box = box;
	return 0;
}

void build_sandbox_close(struct build_sandbox *box)
{
	struct err err;

	if (!box->sandbox)
		return;
	sandbox_leave(box->sandbox);
	sandbox_unref(take_ptr(&box->sandbox));
	/* What stays is removed by the next daemon. */
	if (box->engine->verbs->purge_builder(box->engine, box->id, &err) < 0)
		log_error("the builder %s: %s", box->id, err.message);
}

int build_sandbox_stop(struct build_sandbox *box, struct err *err)
{
	return box->engine->verbs->stop(box->sandbox, END_OPERATOR, err);
}

/* --- commands --- */

/* A command under way, for the job's thread and the watch. */
struct running {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_ended;	  /* under the lock, as what follows */
	bool is_released; /* the watch is over */
	struct process_end end;
	struct job *job;
	char line[LINE_LEN + 1]; /* of the event loop, as what follows, until the end */
	size_t len;
	char tail[TAIL_LINES][TAIL_LEN];
	size_t lines;
	char complaints[TAIL_LINES][TAIL_LEN]; /* the first, of a program that marks them */
	size_t complaint_count;
};

static void keep_line(char kept[TAIL_LEN], const char *line)
{
	snprintf(kept, TAIL_LEN, "%s", line);
	format_end_at_word(kept, TAIL_LEN);
}

/* npm says what is wrong first, and how to use it last; it marks both as errors. */
static void note_complaint(struct running *running)
{
	static const char *const marks[] = {"npm ERR! ", "npm error "};

	for (size_t i = 0; i < array_len(marks); i++) {
		const char *text = running->line + strlen(marks[i]);

		if (running->complaint_count < TAIL_LINES &&
			strncmp(running->line, marks[i], strlen(marks[i])) == 0 && *text)
			keep_line(running->complaints[running->complaint_count++], text);
	}
}

static void end_line(struct running *running)
{
	running->line[running->len] = '\0';
	if (running->job)
		job_log(running->job, "%s", running->line);
	if (running->len > 0)
		keep_line(running->tail[running->lines++ % TAIL_LINES], running->line);
	note_complaint(running);
	running->len = 0;
}

static void take_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct running *running = arg;

	(void)stream;
	for (size_t i = 0; i < len; i++) {
		/* What a terminal would overwrite begins a line of its own. */
		if (data[i] == '\n' || data[i] == '\r' || running->len == LINE_LEN) {
			if (data[i] != '\r' || running->len > 0)
				end_line(running);
			if (data[i] == '\n' || data[i] == '\r')
				continue;
		}
		running->line[running->len++] = data[i] ? (char)data[i] : ' ';
	}
}

static void take_end(void *arg, const struct process_end *end)
{
	struct running *running = arg;

	if (running->len > 0)
		end_line(running);
	pthread_mutex_lock(&running->lock);
	running->end = *end;
	running->has_ended = true;
	pthread_mutex_unlock(&running->lock);
}

static void released(void *arg)
{
	struct running *running = arg;

	pthread_mutex_lock(&running->lock);
	running->is_released = true;
	pthread_cond_broadcast(&running->changed);
	pthread_mutex_unlock(&running->lock);
}

static bool must_stop(const struct build_sandbox *box)
{
	return box->job && job_must_stop(box->job);
}

static const struct process_events events = {
	.output = take_output, .ended = take_end, .release = released};

static void wait_a_while(struct running *running)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&running->changed, &running->lock, &until);
}

/* Until the watch is over; whether the job was told to stop meanwhile. */
static bool wait_for_end(
	struct running *running, const struct build_sandbox *box, struct process *process)
{
	bool is_stopped = false;

	pthread_mutex_lock(&running->lock);
	while (!running->is_released) {
		if (!is_stopped && must_stop(box)) {
			is_stopped = true;
			pthread_mutex_unlock(&running->lock);
			process_kill(process, true);
			pthread_mutex_lock(&running->lock);
			continue;
		}
		wait_a_while(running);
	}
	pthread_mutex_unlock(&running->lock);
	return is_stopped;
}

/* Output may be anything; an error is a text. */
static void make_plain(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
	}
}

static void join_line(char *text, size_t size, const char *line)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%s", len > 0 ? " | " : "", line);
}

/* Its last lines as one, for the error: as many as fit, since the last tell most. */
static void join_tail(const struct running *running, char *text, size_t size)
{
	size_t first = running->lines, room = size;

	while (first > 0 && running->lines - first < TAIL_LINES) {
		size_t len = strlen(running->tail[(first - 1) % TAIL_LINES]) + strlen(" | ");

		if (len >= room)
			break;
		room -= len;
		first--;
	}
	for (size_t i = first; i < running->lines; i++)
		join_line(text, size, running->tail[i % TAIL_LINES]);
}

/* Why it failed, in its own words. */
static void join_words(const struct running *running, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < running->complaint_count; i++)
		join_line(text, size, running->complaints[i]);
	if (running->complaint_count == 0)
		join_tail(running, text, size);
	make_plain(text);
}

/* What to change about the network of a builder is not said: it is gone when somebody reads that. */
static void tell_reason(const struct process_end *end, char *text, size_t size)
{
	static const char *const advice[] = {": sandlot egress ", "; to change that"};

	snprintf(text, size, "%s",
		end->how.detail[0] ? end->how.detail : end_reason_name(end->how.reason));
	for (size_t i = 0; i < array_len(advice); i++) {
		char *at = strstr(text, advice[i]);

		if (at)
			*at = '\0';
	}
}

static int judge(const struct running *running, const char *cwd, struct err *err)
{
	char tail[208], reason[256];
	const struct process_end *end = &running->end;
	int r = process_explain_end(end, cwd, err);

	if (r < 0 || end->exit_code == 0)
		return r;
	join_words(running, tail, sizeof(tail));
	format_end_at_word(tail, sizeof(tail));
	tell_reason(end, reason, sizeof(reason));
	r = err_explain(err, ERR_UNPROCESSABLE, "step_failed", "read the log of the build",
		"exit code %d (%s)%s%s", end->exit_code, reason, tail[0] ? ": " : "", tail);
	format_end_at_word(err->message, sizeof(err->message));
	return r;
}

/* A number among the fields between colons of the line that begins with a name. */
static bool find_in_file(
	const char *text, const char *name, size_t len, unsigned field, uint64_t *ret_number)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line;
		char number[12];
		size_t n;

		if (strncmp(line, name, len) != 0 || line[len] != ':')
			continue;
		for (unsigned i = 0; at && i < field; i++) {
			at = strpbrk(at, ":\n");
			at = at && *at == ':' ? at + 1 : NULL;
		}
		if (!at)
			return false;
		n = strcspn(at, ":\n");
		if (n >= sizeof(number))
			return false;
		memcpy(number, at, n);
		number[n] = '\0';
		return number_parse(number, 0, 65535, ret_number) == 0;
	}
	return false;
}

static int unknown_user(const char *user, struct err *err)
{
	return err_explain(err, ERR_UNPROCESSABLE, "unknown_user",
		"add it in a step before, or name it by its number",
		"the image knows no user or group %.80s", user);
}

/* "", "app", "1000", "app:group", by the image's own files. */
static int read_user(struct build_sandbox *box, const char *user, uint32_t *ret_uid,
	uint32_t *ret_gid, struct err *err)
{
	auto_free char *name = mem_strdup(user), *users = NULL, *groups = NULL;
	char *group = strchr(name, ':');
	uint64_t uid = 0, gid = 0;
	struct err ignored;

	if (!*user || strcmp(user, "root") == 0) {
		*ret_uid = *ret_gid = 0;
		return 0;
	}
	if (group)
		*group++ = '\0';
	if (build_sandbox_load(box, "/etc/passwd", NAMES_MAX, &users, &ignored) < 0)
		users = mem_strdup("");
	if (number_parse(name, 0, 65534, &uid) == 0)
		gid = uid;
	else if (!find_in_file(users, name, strlen(name), 2, &uid) ||
		 !find_in_file(users, name, strlen(name), 3, &gid))
		return unknown_user(user, err);
	if (group && number_parse(group, 0, 65534, &gid) < 0) {
		if (build_sandbox_load(box, "/etc/group", NAMES_MAX, &groups, &ignored) < 0 ||
			!find_in_file(groups, group, strlen(group), 2, &gid))
			return unknown_user(user, err);
	}
	*ret_uid = (uint32_t)uid;
	*ret_gid = (uint32_t)gid;
	return 0;
}

static const char **texts_of(const json_t *array, size_t *ret_count)
{
	size_t count = json_array_size(array);
	const char **texts = mem_new((count + 1) * sizeof(*texts));

	for (size_t i = 0; i < count; i++)
		texts[i] = json_string_value(json_array_get(array, i));
	*ret_count = count;
	return texts;
}

static struct text_pair *pairs_of(const json_t *object, size_t *ret_count)
{
	struct text_pair *pairs = mem_new((json_object_size(object) + 1) * sizeof(*pairs));
	const char *name;
	json_t *value;

	*ret_count = 0;
	json_object_foreach((json_t *)object, name, value)
	{
		pairs[(*ret_count)++] = (struct text_pair){name, json_string_value(value)};
	}
	return pairs;
}

static int run(struct build_sandbox *box, struct command *command, struct err *err)
{
	struct running running = {.job = box->job};
	auto_(process_unrefp) struct process *process = NULL;
	bool is_stopped = false;
	int r = process_new(box->sandbox, &process, err);

	if (r < 0)
		return r;
	pthread_mutex_init(&running.lock, NULL);
	pthread_cond_init(&running.changed, NULL);
	if (!process_watch(process, &events, &running))
		r = err_set(err, ERR_INTERNAL, "a new process has ended");
	if (r == 0)
		r = process_run(process, &command->spec, err);
	if (r == 0)
		is_stopped = wait_for_end(&running, box, process);
	if (r == 0 && !is_stopped)
		r = running.has_ended ? judge(&running, command->cwd, err)
				      : err_set(err, ERR_UNAVAILABLE, "the builder was lost");
	pthread_mutex_destroy(&running.lock);
	pthread_cond_destroy(&running.changed);
	return is_stopped ? -ECANCELED : r;
}

int build_sandbox_run(struct build_sandbox *box, const struct build_command *asked, struct err *err)
{
	struct command_spec spec = {.cwd = asked->workdir, .user = "root"};
	struct command command;
	auto_free const char **argv = NULL;
	auto_free struct text_pair *env = NULL;
	uint32_t uid, gid;
	char user[16];
	int r = read_user(box, asked->user, &uid, &gid, err);

	if (r < 0)
		return r;
	snprintf(user, sizeof(user), "%u", uid);
	spec.user = user;
	argv = texts_of(asked->argv, &spec.argv.count);
	spec.argv.texts = argv;
	env = pairs_of(asked->env, &spec.env.count);
	spec.env.pairs = env;
	r = command_make(box->sandbox, &spec, &command, err);
	if (r < 0)
		return r;
	command.spec.gid = gid;
	r = run(box, &command, err);
	command_fini(&command);
	return r;
}

/* --- files --- */

int build_sandbox_write(struct build_sandbox *box, const char *path, int mode, const void *data,
	size_t len, struct err *err)
{
	struct file_channel_answer answer;

	if (must_stop(box))
		return -ECANCELED;
	return file_channel_store(
		box->sandbox, path, mode < 0 ? 0644 : (uint32_t)mode, data, len, &answer, err);
}

int build_sandbox_mkdir(struct build_sandbox *box, const char *path, struct err *err)
{
	struct file_channel_answer answer;
	struct buf more = BUF_INIT(8);
	int r;

	pack_u32(&more, 0755);
	r = file_channel_ask(box->sandbox, AGENT_FILE_MKDIR, path, &more, &answer, NULL, err);
	buf_fini(&more);
	return r;
}

int build_sandbox_link(
	struct build_sandbox *box, const char *path, const char *target, struct err *err)
{
	auto_free char *dir = mem_strdup(path);
	char *name = strrchr(dir, '/');
	struct buf items = BUF_INIT(4 * AGENT_PATH_MAX);
	struct file_channel_answer answer;
	auto_fd int fd = -1;
	int r;

	*name++ = '\0';
	r = file_channel_ask(
		box->sandbox, AGENT_FILE_UNPACK, *dir ? dir : "/", NULL, &answer, &fd, err);
	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++) {
		pack_u8(&items, i == 0 ? AGENT_ITEM_SYMLINK : AGENT_ITEM_END);
		pack_u32(&items, 0777);
		pack_u32(&items, 0);
		pack_u32(&items, 0);
		pack_u64(&items, (uint64_t)time(NULL) * 1000000000u);
		pack_u64(&items, 0);
		pack_str(&items, i == 0 ? name : "");
		pack_str(&items, i == 0 ? target : "");
	}
	r = items.failed ? err_set(err, ERR_INVALID, "the link %.120s is too long", path)
			 : fd_write_full(fd, items.data, items.len);
	buf_fini(&items);
	if (r == -EINVAL)
		return r;
	return r < 0 ? file_channel_broken(r, err)
		     : file_channel_read_answer(fd, path, &answer, err);
}

struct memory {
	const struct build_sandbox *box;
	const uint8_t *data;
	size_t left;
};

static ssize_t read_memory(void *arg, void *data, size_t size)
{
	struct memory *memory = arg;
	size_t n = size < memory->left ? size : memory->left;

	if (must_stop(memory->box))
		return -ECANCELED;
	memcpy(data, memory->data, n);
	memory->data += n;
	memory->left -= n;
	return (ssize_t)n;
}

int build_sandbox_unpack(
	struct build_sandbox *box, const char *path, const void *data, size_t len, struct err *err)
{
	struct memory memory = {box, data, len};
	const struct tar_reader_source source = {read_memory, &memory};
	struct tar_reader_result result;
	struct file_channel_answer answer;
	struct sandbox_record record;
	uint64_t disk_bytes;
	auto_fd int fd = -1;
	int r = file_channel_ask(box->sandbox, AGENT_FILE_UNPACK, path, NULL, &answer, &fd, err);

	if (r < 0)
		return r;
	sandbox_read(box->sandbox, &record);
	disk_bytes = record.resources.disk_bytes;
	sandbox_record_fini(&record);
	r = tar_reader_run(&source, fd, disk_bytes, &result, err);
	if (r == 0 || result.is_broken)
		r = file_channel_read_answer(fd, path, &answer, err);
	return r;
}

bool build_sandbox_has_directory(struct build_sandbox *box, const char *path)
{
	struct file_channel_answer answer;
	struct buf more = BUF_INIT(16);
	struct err ignored;
	int r;

	pack_u32(&more, 1);
	pack_u32(&more, 1);
	pack_str(&more, "");
	r = file_channel_ask(box->sandbox, AGENT_FILE_LIST, path, &more, &answer, NULL, &ignored);
	buf_fini(&more);
	return r == 0;
}

int build_sandbox_load(
	struct build_sandbox *box, const char *path, size_t max, char **ret_text, struct err *err)
{
	size_t len;

	return file_channel_load(box->sandbox, path, max, ret_text, &len, err);
}
