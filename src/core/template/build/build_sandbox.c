/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/build_sandbox.h"

#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "core/engine/sandbox_state.h"
#include "core/files/file_channel.h"
#include "core/process/command.h"
#include "core/process/process_wait.h"
#include "model/sandbox/sandbox_spec.h"
#include "wire/pack.h"
#include "wire/user_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TAIL_LINES 4
#define LINE_LEN   1024 /* of output, in one line of the log */
#define TAIL_LEN   128
#define NAMES_MAX  (1u << 20) /* bytes of /etc/passwd and /etc/group */

int build_sandbox_open(struct engine *engine, const struct owner *owner, struct job *job,
	const struct build_sandbox_spec *spec, struct build_sandbox *ret_box, struct err *err)
{
	struct build_sandbox box = {.engine = engine,
		.owner = owner,
		.job = job,
		.has_own_network = spec->network != NULL};
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

void build_sandbox_show_as_root(json_t *image)
{
	json_object_set_new(image, "user", json_string(""));
	json_object_set_new(image, "uid", json_integer(0));
	json_object_set_new(image, "gid", json_integer(0));
}

int build_sandbox_stop(struct build_sandbox *box, struct err *err)
{
	return box->engine->verbs->stop(box->sandbox, END_OPERATOR, err);
}

/* --- commands --- */

/* What a command says; of the event loop until its end. */
struct running {
	struct job *job;
	char line[LINE_LEN + 1];
	size_t len;
	char tail[TAIL_LINES][TAIL_LEN];
	size_t lines;
	char complaints[TAIL_LINES][TAIL_LEN]; /* the first, of a program that marks them */
	size_t complaint_count;
	bool has_own_network; /* as that of struct build_sandbox */
	bool has_distrusted;  /* it spoke of a certificate that it does not trust */
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

static bool is_distrust(const char *line)
{
	static const char *const words[] = {"ertificate problem", "ertificate verif",
		"CERTIFICATE_VERIFY_FAILED", "SELF_SIGNED_CERT", "local issuer certificate",
		"UNABLE_TO_GET_ISSUER_CERT"};

	for (size_t i = 0; i < array_len(words); i++) {
		if (strstr(line, words[i]))
			return true;
	}
	return false;
}

static void end_line(struct running *running)
{
	running->line[running->len] = '\0';
	if (running->job)
		job_log(running->job, "%s", running->line);
	if (running->len > 0)
		keep_line(running->tail[running->lines++ % TAIL_LINES], running->line);
	note_complaint(running);
	running->has_distrusted |= is_distrust(running->line);
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

bool build_sandbox_must_stop(const struct build_sandbox *box)
{
	return box->job && job_must_stop(box->job);
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
	static const char *const advice[] = {
		": sandlot egress ", "; sandlot egress ", "; to change that"};

	snprintf(text, size, "%s",
		end->how.detail[0] ? end->how.detail : end_reason_name(end->how.reason));
	for (size_t i = 0; i < array_len(advice); i++) {
		char *at = strstr(text, advice[i]);

		if (at)
			*at = '\0';
	}
}

/* What lets a build have what it was refused, if that is known; and where all of its words are. */
static void tell_remedy(
	const struct running *running, const struct process_end *end, char *text, size_t size)
{
	const struct job_record *job = running->job ? job_record(running->job) : NULL;
	static const char option[] = " --allow ";
	const char *rule = strstr(end->how.detail, option);
	char log[64 + ID_LEN] = "read the log of the build";

	if (job)
		format_append(log, sizeof(log), strlen(log), ": sandlot job log %s", job->id);
	text[0] = '\0';
	if (running->has_distrusted)
		snprintf(text, size,
			"sandlotd --package-ca FILE (SANDLOT_PACKAGE_CA) names the certificates of "
			"mirrors; ");
	else if (rule && running->has_own_network && job)
		snprintf(text, size, "sandlot egress %s --allow %s, then try again; ", job->target,
			rule + strlen(option));
	else if (rule)
		snprintf(text, size,
			"sandlotd --allow %s (SANDLOT_ALLOW, beside what is there) lets builds "
			"reach it; ",
			rule + strlen(option));
	/* Half of it helps nobody. */
	if (strlen(text) + strlen(log) >= size)
		text[0] = '\0';
	format_append(text, size, strlen(text), "%s", log);
}

static int judge(const struct running *running, const struct process_end *end, const char *cwd,
	struct err *err)
{
	char tail[208], reason[256], remedy[sizeof(err->remedy)];
	int r = process_explain_end(end, cwd, err);

	if (r < 0 || end->exit_code == 0)
		return r;
	join_words(running, tail, sizeof(tail));
	format_end_at_word(tail, sizeof(tail));
	tell_reason(end, reason, sizeof(reason));
	tell_remedy(running, end, remedy, sizeof(remedy));
	r = err_explain(err, ERR_UNPROCESSABLE, "step_failed", remedy, "exit code %d (%s)%s%s",
		end->exit_code, reason, tail[0] ? ": " : "", tail);
	format_end_at_word(err->message, sizeof(err->message));
	return r;
}

static int unknown_user(const char *user, struct err *err)
{
	return err_explain(err, ERR_UNPROCESSABLE, "unknown_user",
		"add it in a step before, or name it by its number",
		"the image knows no user or group %.80s", user);
}

/* Who that is by the image's own files, which are read now: a step before may have added the user. */
static int read_user(
	struct build_sandbox *box, const char *user, struct user_lookup *ret_user, struct err *err)
{
	auto_free char *users = NULL, *groups = NULL;
	struct err ignored;

	if (*user && build_sandbox_load(box, "/etc/passwd", NAMES_MAX, &users, &ignored) < 0)
		users = NULL;
	if (*user && build_sandbox_load(box, "/etc/group", NAMES_MAX, &groups, &ignored) < 0)
		groups = NULL;
	return user_lookup_find(user, users ? users : "", groups ? groups : "", ret_user) ==
			       AGENT_USER_FOUND
		       ? 0
		       : unknown_user(user, err);
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
	struct running running = {.job = box->job, .has_own_network = box->has_own_network};
	struct process_wait wait = {.job = box->job, .output = take_output, .arg = &running};
	struct process_end end;
	int r = process_wait_run(box->sandbox, &command->spec, &wait, &end, err);

	if (running.len > 0)
		end_line(&running);
	return r < 0 ? r : judge(&running, &end, command->cwd, err);
}

int build_sandbox_run(struct build_sandbox *box, const struct build_command *asked, struct err *err)
{
	struct command_spec spec = {.cwd = asked->workdir, .user = "root"};
	struct command command;
	auto_free const char **argv = NULL;
	auto_free struct text_pair *env = NULL;
	auto_free struct user_lookup *found = mem_new(sizeof(*found));
	char user[16];
	int r = read_user(box, asked->user, found, err);

	if (r < 0)
		return r;
	snprintf(user, sizeof(user), "%u", found->uid);
	spec.user = user;
	argv = texts_of(asked->argv, &spec.argv.count);
	spec.argv.texts = argv;
	env = pairs_of(asked->env, &spec.env.count);
	spec.env.pairs = env;
	r = command_make(box->sandbox, &spec, &command, err);
	if (r < 0)
		return r;
	command.spec.gid = found->gid;
	command.spec.groups.count = found->group_count;
	memcpy(command.spec.groups.list, found->groups, sizeof(found->groups));
	r = run(box, &command, err);
	command_fini(&command);
	return r;
}

/* --- files --- */

int build_sandbox_write(struct build_sandbox *box, const char *path, int mode, const void *data,
	size_t len, struct err *err)
{
	struct file_channel_answer answer;

	if (build_sandbox_must_stop(box))
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

int build_sandbox_unpack(struct build_sandbox *box, const char *path,
	const struct tar_reader_source *source, struct tar_reader_result *ret_result,
	struct err *err)
{
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
	r = tar_reader_run(source, fd, disk_bytes, ret_result, err);
	if (r == 0 || ret_result->is_broken)
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
