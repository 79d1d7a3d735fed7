/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_prepare.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/files/file_channel.h"
#include "core/process/environment.h"
#include "core/sandbox/baseline.h"
#include "core/sandbox/sandbox_link.h"
#include "core/template/template_options.h"
#include "wire/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE	     65536
#define PREPARED_MAX 256 /* images that are remembered */

struct prepared {
	uint32_t uid, gid;
	bool has_skeleton;
	bool was_ready; /* nothing had to be done */
	char home[AGENT_PATH_MAX];
	uint32_t groups[AGENT_GROUPS_MAX]; /* that it is in besides gid */
	uint32_t group_count;
};

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int compare_texts(const void *one, const void *other)
{
	return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static bool has_volumes(const json_t *image)
{
	return json_array_size(json_object_get(image, "volumes")) > 0;
}

/*
 * The directories that an image promises, each in a line: where its commands run, and its volumes, each again with a +
 * that makes it durable. One that is within another comes after it.
 */
static char *list_dirs(const json_t *image)
{
	struct buf dirs = BUF_INIT(AGENT_DIRS_MAX - 1);
	const json_t *volumes = json_object_get(image, "volumes");
	auto_free const char **paths = mem_new((json_array_size(volumes) + 1) * sizeof(*paths));
	size_t count = 0, i;
	json_t *volume;

	buf_printf(&dirs, "%s\n", text_of(image, "workdir"));
	json_array_foreach((json_t *)volumes, i, volume)
	{
		const char *path = json_string_value(volume);

		if (path && !strchr(path, '\n'))
			paths[count++] = path;
	}
	qsort(paths, count, sizeof(*paths), compare_texts);
	for (i = 0; i < count; i++) {
		if (dirs.len + 2 * strlen(paths[i]) + 3 < dirs.max)
			buf_printf(&dirs, "%s\n+%s\n", paths[i], paths[i]);
	}
	return buf_take_str(&dirs);
}

static int read_groups(int fd, struct prepared *prepared)
{
	uint8_t raw[4 * AGENT_GROUPS_MAX];
	struct unpack in = UNPACK_INIT(raw, 4);
	int r = fd_read_full(fd, raw, 4);

	if (r < 0)
		return r;
	prepared->group_count = unpack_u32(&in);
	if (prepared->group_count > AGENT_GROUPS_MAX)
		return -EPROTO;
	r = fd_read_full(fd, raw, 4 * prepared->group_count);
	in = UNPACK_INIT(raw, 4 * prepared->group_count);
	for (uint32_t i = 0; r >= 0 && i < prepared->group_count; i++) {
		prepared->groups[i] = unpack_u32(&in);
		r = prepared->groups[i] > ENVIRONMENT_UID_MAX ? -EPROTO : 0;
	}
	return r;
}

/* What the agent said: any bytes. */
static int read_prepared(int fd, enum agent_user_fault *ret_fault, struct prepared *ret_prepared)
{
	uint8_t raw[10];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	int r = fd_read_full(fd, raw, sizeof(raw));
	uint8_t fault;

	if (r < 0)
		return r;
	fault = unpack_u8(&in);
	ret_prepared->uid = unpack_u32(&in);
	ret_prepared->gid = unpack_u32(&in);
	ret_prepared->has_skeleton = unpack_u8(&in);
	if (fault > AGENT_GROUP_UNKNOWN || ret_prepared->uid > ENVIRONMENT_UID_MAX ||
		ret_prepared->gid > ENVIRONMENT_UID_MAX)
		return -EPROTO;
	*ret_fault = (enum agent_user_fault)fault;
	r = file_channel_read_str(fd, ret_prepared->home);
	return r < 0 ? r : read_groups(fd, ret_prepared);
}

static int refuse_user(enum agent_user_fault fault, const char *user, struct err *err)
{
	bool is_group = fault == AGENT_GROUP_UNKNOWN;

	return err_explain(err, ERR_UNPROCESSABLE, "user_not_found",
		"give the template another `user`, by its number if need be",
		"the image has no %s of the user %.64s that its commands are to run as: "
		"/etc/%s does not name it",
		is_group ? "group" : "line", user, is_group ? "group" : "passwd");
}

static int ask(struct sandbox *sandbox, struct agent_link *link, const json_t *image,
	const char *user, struct prepared *ret_prepared, struct err *err)
{
	const char *skeleton = template_options_skeleton(json_object_get(image, "options"));
	struct buf arguments = BUF_INIT(AGENT_CHANNEL_FIRST_MAX);
	auto_free char *dirs = list_dirs(image);
	struct file_channel_answer answer;
	enum agent_user_fault fault;
	auto_fd int fd = -1;
	int r;

	pack_str(&arguments, ENVIRONMENT_CWD);
	pack_str(&arguments, user);
	pack_str(&arguments, skeleton);
	pack_str(&arguments, dirs);
	r = file_channel_open_on(sandbox, link, 0, AGENT_FILE_PREPARE, &arguments, &fd, err);
	buf_fini(&arguments);
	if (r == 0)
		r = file_channel_read_answer(fd, ENVIRONMENT_CWD, &answer, err);
	if (r < 0)
		return r;
	ret_prepared->was_ready = answer.file.flags & AGENT_FILE_EXISTED;
	r = read_prepared(fd, &fault, ret_prepared);
	if (r < 0)
		return file_channel_broken(r, err);
	return fault == AGENT_USER_FOUND ? 0 : refuse_user(fault, user, err);
}

/* --- the skeleton --- */

static int open_tree(struct sandbox *sandbox, struct agent_link *link, uint32_t user,
	enum agent_file_op op, const char *path, int *ret_fd, struct err *err)
{
	struct buf arguments = BUF_INIT(AGENT_PATH_MAX + 4);
	struct file_channel_answer answer;
	auto_fd int fd = -1;
	int r;

	pack_str(&arguments, path);
	r = file_channel_open_on(sandbox, link, user, op, &arguments, &fd, err);
	buf_fini(&arguments);
	if (r == 0)
		r = file_channel_read_answer(fd, path, &answer, err);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* Passes on what comes until it ends. What the receiver finds wrong, it says in its answer. */
static int relay(int from, int to)
{
	auto_free char *piece = mem_new(PIECE);
	ssize_t n;

	while ((n = read(from, piece, PIECE)) > 0) {
		int r = fd_write_full(to, piece, (size_t)n);

		if (r == -EPIPE || r == -ECONNRESET)
			return 0;
		if (r < 0)
			return r;
	}
	return n < 0 ? -errno : 0;
}

/* What one helper packs, another unpacks: both see the sandbox's files alone, and its disk limit holds. */
static int seed(struct sandbox *sandbox, struct agent_link *link, uint32_t user,
	const char *skeleton, struct err *err)
{
	struct file_channel_answer answer;
	auto_fd int from = -1, to = -1;
	int r = open_tree(sandbox, link, user, AGENT_FILE_PACK, skeleton, &from, err);

	if (r == 0)
		r = open_tree(sandbox, link, user, AGENT_FILE_UNPACK, ENVIRONMENT_CWD, &to, err);
	if (r < 0)
		return r;
	r = relay(from, to);
	if (r < 0)
		return file_channel_broken(r, err);
	r = file_channel_read_answer(to, ENVIRONMENT_CWD, &answer, err);
	if (r < 0)
		err_prefix(err, "seed the workspace from %s", skeleton);
	return r;
}

/* --- who the user is --- */

static json_t *user_to_json(const struct prepared *prepared)
{
	json_t *groups = json_array();

	for (uint32_t i = 0; i < prepared->group_count; i++)
		json_array_append_new(groups, json_integer((json_int_t)prepared->groups[i]));
	return json_pack("{s:I, s:I, s:o, s:o}", "uid", (json_int_t)prepared->uid, "gid",
		(json_int_t)prepared->gid, "home", json_string(prepared->home) ?: json_string(""),
		"groups", groups);
}

/* The row is written when it runs. */
static void keep(struct sandbox *sandbox, const struct prepared *prepared)
{
	json_auto_t *user = user_to_json(prepared);

	pthread_mutex_lock(&sandbox->state);
	json_object_update(sandbox->record.image, user);
	pthread_mutex_unlock(&sandbox->state);
}

void sandbox_prepare_again(json_t *image)
{
	json_object_del(image, "uid");
	json_object_del(image, "gid");
	json_object_del(image, "home");
	json_object_del(image, "groups");
}

/* Those of the host need nothing, unless the workspace may be another user's. */
static bool is_needed(const struct sandbox_record *record)
{
	/* Links to volumes are part of the system layer, which a failure of the host takes. */
	if (environment_is_foreign(record))
		return !json_object_get(record->image, "uid") || has_volumes(record->image);
	return record->status == SANDBOX_CREATING && record->is_on_kept;
}

/* Who runs commands of the host's files is known, and may have had another template before. */
static void take_over_workspace(struct sandbox *sandbox, struct agent_link *link)
{
	auto_free struct prepared *ignored = mem_new(sizeof(*ignored));
	struct err err;

	/* Without it the sandbox can be used all the same, and root inside can mend it. */
	if (ask(sandbox, link, sandbox->record.image, "sandbox", ignored, &err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
}

/* --- images in which nothing has to be done --- */

/* All that the answer depends on, in a system that nothing has run in: the digest of its layers, and what is asked. */
static char *key_of(const json_t *image)
{
	auto_free char *dirs = list_dirs(image);

	return mem_printf("%s\n%s\n%s\n%s", text_of(image, "stack"), text_of(image, "user"),
		template_options_skeleton(json_object_get(image, "options")), dirs);
}

/* Copies the members of the image that say who its user is, if they are known. */
static bool recall(struct sandbox *sandbox, const char *key)
{
	struct engine *engine = sandbox->engine;
	json_auto_t *known = NULL;

	pthread_mutex_lock(&engine->prepared_lock);
	known = json_deep_copy(json_object_get(engine->prepared, key));
	pthread_mutex_unlock(&engine->prepared_lock);
	if (!known)
		return false;
	pthread_mutex_lock(&sandbox->state);
	json_object_update(sandbox->record.image, known);
	pthread_mutex_unlock(&sandbox->state);
	return true;
}

static void remember(struct engine *engine, const char *key, const struct prepared *prepared)
{
	pthread_mutex_lock(&engine->prepared_lock);
	if (json_object_size(engine->prepared) >= PREPARED_MAX)
		json_object_clear(engine->prepared);
	json_object_set_new(engine->prepared, key, user_to_json(prepared));
	pthread_mutex_unlock(&engine->prepared_lock);
}

/* --- all of it --- */

/* Of one whose user is known: what its image promises is looked after at each start. */
static int renew_volumes(struct sandbox *sandbox, struct agent_link *link, struct err *err)
{
	auto_free struct prepared *ignored = mem_new(sizeof(*ignored));
	const struct sandbox_record *record = &sandbox->record;
	uint32_t uid = environment_uid(record);
	auto_free char *user = mem_printf("%u:%u", uid, environment_gid(record, uid));

	return ask(sandbox, link, record->image, user, ignored, err);
}

static int prepare_image(
	struct sandbox *sandbox, struct agent_link *link, bool is_new, struct err *err)
{
	const struct sandbox_record *record = &sandbox->record;
	const char *skeleton = template_options_skeleton(json_object_get(record->image, "options"));
	auto_free struct prepared *prepared = NULL;
	auto_free char *key = key_of(record->image);
	int r;

	/* In a new sandbox nobody has changed what the image says. */
	if (is_new && recall(sandbox, key))
		return 0;
	prepared = mem_new(sizeof(*prepared));
	r = ask(sandbox, link, record->image, text_of(record->image, "user"), prepared, err);
	if (r == 0 && is_new && prepared->has_skeleton)
		r = seed(sandbox, link, prepared->uid, skeleton, err);
	if (r < 0)
		return r;
	if (is_new && prepared->has_skeleton)
		baseline_note(sandbox->engine, sandbox->id, record->image, sandbox->id);
	if (is_new && prepared->was_ready)
		remember(sandbox->engine, key, prepared);
	keep(sandbox, prepared);
	return 0;
}

static bool is_new(const struct sandbox_record *record)
{
	return record->status == SANDBOX_CREATING && !record->is_on_kept && !record->snapshot[0];
}

/* The record is changed by holders of life alone. */
int sandbox_prepare(struct sandbox *sandbox, struct err *err)
{
	struct agent_link *link;
	int r;

	if (!is_needed(&sandbox->record))
		return 0;
	r = sandbox_link_await(sandbox, &link, err);
	if (r < 0)
		return r;
	if (json_object_get(sandbox->record.image, "uid"))
		r = renew_volumes(sandbox, link, err);
	else if (environment_is_foreign(&sandbox->record))
		r = prepare_image(sandbox, link, is_new(&sandbox->record), err);
	else
		take_over_workspace(sandbox, link);
	agent_link_unref(link);
	return r;
}
