/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/stage_copy.h"

#include "base/fd.h"
#include "core/files/file_channel.h"
#include "core/files/tar_reader.h"
#include "image/recipe_files.h"
#include "wire/pack.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define PIECE	     65536
#define HEAD_LEN     29	    /* of an item, before its names */
#define PAGE	     16384u /* names of a directory that the agent tells at once */
#define PAGES_MAX    64	    /* of a directory, among whose names a pattern chooses */
#define MATCHES_MAX  16384u /* of a pattern, and directories that it leads to */
#define ITEM_ROOM    (4 * AGENT_PATH_MAX)
#define PATTERN_SIGN "*?[\\"

struct stage_copy {
	const struct stage_copy_source *from;
	struct build_sandbox *to;
	const struct recipe_step *step;
	/* Does what is to be done with a file or a directory. */
	int (*take)(struct stage_copy *copy, const char *path, struct err *err);
	bool is_into;	 /* the target is a directory */
	json_t *written; /* paths, for chown */
	char *piece;
	struct digest_stream *hash;
	unsigned looked; /* names that were looked at for a pattern: links may lead in circles */
};

/* An item of PACK and UNPACK (wire/agent.h). */
struct item {
	uint8_t kind;
	uint32_t mode;
	uint64_t mtime_ns, size;
	char name[AGENT_PATH_MAX], target[AGENT_PATH_MAX];
};

static int read_item(int fd, struct item *item)
{
	uint8_t raw[HEAD_LEN];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	int r = fd_read_full(fd, raw, sizeof(raw));

	if (r < 0)
		return r;
	item->kind = unpack_u8(&in);
	item->mode = unpack_u32(&in);
	(void)unpack_u32(&in); /* whose it is */
	(void)unpack_u32(&in);
	item->mtime_ns = unpack_u64(&in);
	item->size = unpack_u64(&in);
	r = file_channel_read_str(fd, item->name);
	return r < 0 ? r : file_channel_read_str(fd, item->target);
}

static int write_item(int fd, const struct item *item)
{
	struct buf out = BUF_INIT(ITEM_ROOM);
	int r;

	pack_u8(&out, item->kind);
	pack_u32(&out, item->mode);
	pack_u32(&out, 0);
	pack_u32(&out, 0);
	pack_u64(&out, item->mtime_ns);
	pack_u64(&out, item->size);
	pack_str(&out, item->name);
	pack_str(&out, item->target);
	r = out.failed ? -ENAMETOOLONG : fd_write_full(fd, out.data, out.len);
	buf_fini(&out);
	return r;
}

/* The receiver gave up: what it says at its end tells why. */
static bool has_refused(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

static int pass_content(struct stage_copy *copy, int in, int out, uint64_t size)
{
	while (size > 0) {
		size_t n = size < PIECE ? (size_t)size : PIECE;
		int r = fd_read_full(in, copy->piece, n);

		if (r == 0)
			r = fd_write_full(out, copy->piece, n);
		if (r < 0)
			return r;
		if (build_sandbox_must_stop(copy->from->box))
			return -ECANCELED;
		size -= n;
	}
	return 0;
}

/* What --chown is for: each thing that was named or lies in a directory that was. */
static void note_written(struct stage_copy *copy, const char *dir, const char *name)
{
	if (copy->step->chown && !strchr(name, '/'))
		json_array_append_new(copy->written, json_sprintf("%s/%s", dir, name));
}

/* Passes all items on; the only one has another name if `rename` says so. */
static int pass_items(struct stage_copy *copy, int in, int out, const char *dir, const char *rename)
{
	auto_free struct item *item = mem_new(sizeof(*item));
	int r;

	while ((r = read_item(in, item)) == 0) {
		if (rename && item->kind == AGENT_ITEM_FILE)
			snprintf(item->name, sizeof(item->name), "%s", rename);
		if (copy->step->mode >= 0 && item->kind == AGENT_ITEM_FILE)
			item->mode = (uint32_t)copy->step->mode;
		if (item->kind != AGENT_ITEM_END)
			note_written(copy, dir, item->name);
		r = write_item(out, item);
		if (r == 0 && item->kind == AGENT_ITEM_END)
			return 0;
		if (r == 0 && item->kind == AGENT_ITEM_FILE)
			r = pass_content(copy, in, out, item->size);
		if (r < 0)
			return r;
	}
	return r;
}

static int missing(const struct stage_copy *copy, const char *path, struct err *err)
{
	return err_explain(err, ERR_UNPROCESSABLE, "step_failed", "look at what the stage has made",
		"%.60s has no %.120s", copy->from->name, path + strlen(copy->from->root));
}

static int ask_for(struct stage_copy *copy, const char *path, struct file_channel_answer *answer,
	int *ret_fd, struct err *err)
{
	int r = file_channel_ask(
		copy->from->box->sandbox, AGENT_FILE_PACK, path, NULL, answer, ret_fd, err);

	return r < 0 && err->kind == ERR_NOT_FOUND ? missing(copy, path, err) : r;
}

/* --- archives --- */

struct packed_file {
	struct stage_copy *copy;
	int fd;
	uint64_t left;
	int result; /* of the channel */
};

static ssize_t read_packed(void *arg, void *data, size_t size)
{
	struct packed_file *file = arg;
	size_t n = size < file->left ? size : (size_t)file->left;

	if (build_sandbox_must_stop(file->copy->from->box))
		return -ECANCELED;
	file->result = fd_read_full(file->fd, data, n);
	if (file->result < 0)
		return file->result;
	file->left -= n;
	return (ssize_t)n;
}

/* An archive that ADD names itself. */
static int unpack_archive(struct stage_copy *copy, const char *path, int in, struct err *err)
{
	auto_free struct item *item = mem_new(sizeof(*item));
	struct packed_file file = {.copy = copy, .fd = in};
	const struct tar_reader_source source = {read_packed, &file};
	struct tar_reader_result result;
	int r;

	if (copy->step->chown)
		return err_explain(err, ERR_UNPROCESSABLE, "step_failed",
			"unpack it without --chown, and chown it in a RUN",
			"ADD --chown is for files, and %.120s is an archive",
			path + strlen(copy->from->root) + 1);
	r = read_item(in, item);
	if (r == 0 && item->kind != AGENT_ITEM_FILE)
		r = -EPROTO;
	if (r < 0)
		return file_channel_broken(r, err);
	file.left = item->size;
	r = build_sandbox_unpack(copy->to, copy->step->target, &source, &result, err);
	if (file.result < 0)
		return file_channel_broken(file.result, err);
	if (r < 0 && r != -ECANCELED)
		err_prefix(err, "%.120s", path + strlen(copy->from->root) + 1);
	return r;
}

static int copy_path(struct stage_copy *copy, const char *path, struct err *err)
{
	const char *target = copy->step->target, *name = strrchr(path, '/') + 1;
	auto_free char *dir = mem_strdup(target), *rename = NULL;
	struct file_channel_answer answer;
	auto_fd int in = -1, out = -1;
	int r = ask_for(copy, path, &answer, &in, err);

	if (r < 0)
		return r;
	if (copy->step->unpacks && answer.file.kind != AGENT_FILE_DIRECTORY &&
		recipe_is_archive(path))
		return unpack_archive(copy, path, in, err);
	if (answer.file.kind != AGENT_FILE_DIRECTORY && copy->is_into) {
		rename = mem_strdup(name);
	} else if (answer.file.kind != AGENT_FILE_DIRECTORY) {
		char *slash = strrchr(dir, '/');

		rename = mem_strdup(slash + 1);
		*slash = '\0';
	}
	r = file_channel_ask(
		copy->to->sandbox, AGENT_FILE_UNPACK, *dir ? dir : "/", NULL, &answer, &out, err);
	if (r < 0)
		return r;
	r = pass_items(copy, in, out, strcmp(dir, "/") == 0 ? "" : dir, rename);
	if (r == -ECANCELED)
		return r;
	if (r < 0 && !has_refused(r))
		return file_channel_broken(r, err);
	return file_channel_read_answer(out, *dir ? dir : "/", &answer, err);
}

/* --- hashes --- */

static void hash_text(struct digest_stream *hash, const char *text)
{
	digest_stream_add(hash, text, strlen(text) + 1);
}

static int hash_content(struct stage_copy *copy, int in, uint64_t size, struct digest_stream *hash)
{
	while (size > 0) {
		size_t n = size < PIECE ? (size_t)size : PIECE;
		int r = fd_read_full(in, copy->piece, n);

		if (r < 0)
			return r;
		if (build_sandbox_must_stop(copy->from->box))
			return -ECANCELED;
		digest_stream_add(hash, copy->piece, n);
		size -= n;
	}
	return 0;
}

static int hash_item(
	struct stage_copy *copy, int in, const struct item *item, struct digest *ret_digest)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	char head[64];
	int r = 0;

	snprintf(head, sizeof(head), "%u %o %llu", item->kind, item->mode,
		(unsigned long long)item->size);
	hash_text(hash, head);
	hash_text(hash, item->name);
	hash_text(hash, item->target);
	if (item->kind == AGENT_ITEM_FILE)
		r = hash_content(copy, in, item->size, hash);
	digest_stream_read(hash, ret_digest);
	return r;
}

/* The agent packs a tree in order of names, so the same tree has the same hash. */
static int hash_items(struct stage_copy *copy, int in)
{
	auto_free struct item *item = mem_new(sizeof(*item));
	struct digest digest;
	int r;

	do {
		r = read_item(in, item);
		if (r == 0)
			r = hash_item(copy, in, item, &digest);
		if (r == 0)
			hash_text(copy->hash, digest_hex(&digest));
	} while (r == 0 && item->kind != AGENT_ITEM_END);
	return r;
}

static int hash_path(struct stage_copy *copy, const char *path, struct err *err)
{
	struct file_channel_answer answer;
	auto_fd int in = -1;
	int r = ask_for(copy, path, &answer, &in, err);

	if (r < 0)
		return r;
	hash_text(copy->hash, path);
	r = hash_items(copy, in);
	return r < 0 && r != -ECANCELED ? file_channel_broken(r, err) : r;
}

/* --- patterns --- */

static int fits_too_much(struct err *err)
{
	return err_explain(err, ERR_UNPROCESSABLE, "step_failed",
		"name the directory that is wanted, without a pattern",
		"the pattern leads to more than %u names", MATCHES_MAX);
}

/* One page, after which `last` is its last name; 1 if there are more. */
static int read_names(int fd, const char *pattern, json_t *names, char last[AGENT_PATH_MAX])
{
	struct file_channel_answer answer;
	struct err ignored;
	uint8_t more = 0;
	unsigned count = 0;
	int r;

	while ((r = fd_read_full(fd, &more, 1)) == 0 && more) {
		if (count++ == PAGE)
			return -EPROTO;
		if ((r = file_channel_read_path(fd, last)) < 0 ||
			file_channel_read_answer(fd, last, &answer, &ignored) < 0)
			return r < 0 ? r : -EPROTO;
		if (fnmatch(pattern, last, FNM_PATHNAME) == 0)
			json_array_append_new(names, json_string(last));
	}
	if (r == 0)
		r = fd_read_full(fd, &more, 1);
	return r < 0 ? r : more > 0;
}

/* The names of a directory that fit one part of a path. */
static int find_names(struct stage_copy *copy, const char *dir, const char *pattern, json_t *names,
	struct err *err)
{
	char last[AGENT_PATH_MAX] = "";
	int r = 1;

	for (unsigned page = 0; r > 0; page++) {
		struct buf more = BUF_INIT(AGENT_PATH_MAX + 64);
		struct file_channel_answer answer;
		auto_fd int fd = -1;

		if (page == PAGES_MAX || json_array_size(names) > MATCHES_MAX)
			return fits_too_much(err);
		pack_u32(&more, 1);
		pack_u32(&more, PAGE);
		pack_str(&more, last);
		r = file_channel_ask(
			copy->from->box->sandbox, AGENT_FILE_LIST, dir, &more, &answer, &fd, err);
		buf_fini(&more);
		if (r < 0)
			return err->kind == ERR_NOT_FOUND ? missing(copy, dir, err) : r;
		r = read_names(fd, pattern, names, last);
		if (r < 0)
			return file_channel_broken(r, err);
	}
	return 0;
}

static enum agent_file_kind kind_of(struct stage_copy *copy, const char *path)
{
	struct file_channel_answer answer;
	struct err ignored;

	return file_channel_ask(copy->from->box->sandbox, AGENT_FILE_STAT, path, NULL, &answer,
		       NULL, &ignored) < 0
		       ? AGENT_FILE_NONE
		       : (enum agent_file_kind)answer.file.kind;
}

/* Adds the paths that fit, part by part. Of `path` the first bytes are no pattern, whatever signs they have. */
static int find_paths(
	struct stage_copy *copy, const char *path, size_t known, json_t *found, struct err *err)
{
	size_t begin = known + strcspn(path + known, PATTERN_SIGN), end;
	auto_free char *dir = NULL, *pattern = NULL;
	json_auto_t *names = json_array();
	const json_t *name;
	size_t i;
	int r;

	if (build_sandbox_must_stop(copy->from->box))
		return -ECANCELED;
	if (++copy->looked > MATCHES_MAX)
		return fits_too_much(err);
	if (!path[begin]) {
		/* What a directory has just listed is there. */
		if (!path[known] || kind_of(copy, path) != AGENT_FILE_NONE)
			json_array_append_new(found, json_string(path));
		return 0;
	}
	while (path[begin - 1] != '/')
		begin--;
	end = begin + strcspn(path + begin, "/");
	dir = mem_printf("%.*s", (int)begin, path);
	pattern = mem_printf("%.*s", (int)(end - begin), path + begin);
	/* What was found by a pattern need not be a directory. */
	if (known > 0 && kind_of(copy, dir) != AGENT_FILE_DIRECTORY)
		return 0;
	r = find_names(copy, dir, pattern, names, err);
	json_array_foreach(names, i, name)
	{
		auto_free char *one =
			mem_printf("%s%s%s", dir, json_string_value(name), path + end);

		if (r < 0)
			break;
		r = find_paths(copy, one, strlen(one) - strlen(path + end), found, err);
	}
	return r;
}

static int take_matches(struct stage_copy *copy, const char *path, struct err *err)
{
	json_auto_t *found = json_array();
	const json_t *one;
	size_t i;
	int r = find_paths(copy, path, 0, found, err);

	if (r == 0 && json_array_size(found) == 0)
		r = missing(copy, path, err);
	json_array_foreach(found, i, one)
	{
		if (r == 0)
			r = copy->take(copy, json_string_value(one), err);
	}
	return r;
}

static int give_away(struct stage_copy *copy, struct err *err)
{
	json_auto_t *argv = json_pack("[s, s, s, s]", "chown", "-hR", "--", copy->step->chown);

	json_array_extend(argv, copy->written);
	return build_sandbox_run(
		copy->to, &(struct build_command){.argv = argv, .user = "", .workdir = "/"}, err);
}

static int take_words(struct stage_copy *copy, struct err *err)
{
	const json_t *word;
	size_t i;
	int r = 0;

	json_array_foreach(copy->step->words, i, word)
	{
		auto_free char *name = recipe_join_path("", json_string_value(word));
		auto_free char *path = mem_printf("%s%s", copy->from->root,
			*copy->from->root && strcmp(name, "/") == 0 ? "" : name);

		if (r == 0)
			r = strpbrk(path, PATTERN_SIGN) ? take_matches(copy, path, err)
							: copy->take(copy, path, err);
	}
	return r;
}

int stage_copy_run(const struct stage_copy_source *from, struct build_sandbox *to,
	const struct recipe_step *step, struct err *err)
{
	auto_free char *piece = mem_new(PIECE);
	json_auto_t *written = json_array();
	struct stage_copy copy = {.from = from,
		.to = to,
		.step = step,
		.take = copy_path,
		.is_into = step->is_into || build_sandbox_has_directory(to, step->target),
		.written = written,
		.piece = piece};
	int r = take_words(&copy, err);

	if (r == 0 && step->chown && json_array_size(written) > 0)
		r = give_away(&copy, err);
	return r;
}

int stage_copy_hash(const struct stage_copy_source *from, const struct recipe_step *step,
	struct digest_stream *hash, struct err *err)
{
	auto_free char *piece = mem_new(PIECE);
	struct stage_copy copy = {
		.from = from, .step = step, .take = hash_path, .piece = piece, .hash = hash};

	return take_words(&copy, err);
}
