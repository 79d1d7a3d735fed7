/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/build_spec.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/ignore_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_BYTES_MAX (640u << 10) /* all together, so that the request has less than 1 MiB */
#define DEPTH_MAX	32
#define LINK_MAX_LEN	1024
#define AT(member)	offsetof(struct build_spec, member)

const struct option build_spec_options[] = {
	{OPTION_TEXT, 0, "from", "TEMPLATE", "create: the template or image that it begins with",
		AT(from)},
	{OPTION_TEXT, 0, "bootstrap", "SUITE",
		"create: a new Debian instead of --from, such as bookworm", AT(bootstrap)},
	{OPTION_LIST, 0, "apt", "A,B", "create: packages of Debian", AT(apt)},
	{OPTION_LIST, 0, "apk", "A,B", "create: packages of Alpine", AT(apk)},
	{OPTION_LIST, 0, "pip", "A,B", "create: packages of Python", AT(pip)},
	{OPTION_LIST, 0, "npm", "A,B", "create: packages of Node", AT(npm)},
	{OPTION_LIST, 0, "mirror", "KIND=URL",
		"create, build DIR: where packages of apt, apk, pip or npm come from; may be "
		"repeated",
		AT(mirrors)},
	{OPTION_LIST, 0, "run", "COMMAND", "create: a line for the shell; may be repeated",
		AT(run)},
	{OPTION_LIST, 0, "file", "PATH=FILE",
		"create: a file of this machine, under a path; may be repeated", AT(files)},
	{OPTION_TEXT, 'f', "dockerfile", "FILE", "build: the Dockerfile", AT(dockerfile)},
	{OPTION_LIST, 0, "build-arg", "K=V", "build: a value of its ARG; may be repeated",
		AT(args)},
	{OPTION_TEXT, 0, "target", "STAGE", "build: the stage that is wanted, else the last",
		AT(target)},
	{OPTION_END},
};

/* --- files --- */

struct files {
	json_t *texts, *encoded, *modes, *links, *directories; /* until they are given */
	size_t bytes;
	char *ignored; /* the text of .dockerignore */
};

static int too_large(struct err *err)
{
	return err_explain(err, ERR_TOO_LARGE, NULL,
		"begin with a Dockerfile, or fetch large files in a command",
		"the files that are sent have more than %u KiB together", FILES_BYTES_MAX >> 10);
}

static void files_init(struct files *files)
{
	*files = (struct files){.texts = json_object(),
		.encoded = json_object(),
		.modes = json_object(),
		.links = json_object(),
		.directories = json_array()};
}

static void files_drop(struct files *files)
{
	json_decref(files->texts);
	json_decref(files->encoded);
	json_decref(files->modes);
	json_decref(files->links);
	json_decref(files->directories);
}

/* Gives what was gathered to the object of a request. */
static void files_give(struct files *files, json_t *object)
{
	json_object_set(object, "files", files->texts);
	json_object_set(object, "files_base64", files->encoded);
	if (json_object_size(files->modes) > 0)
		json_object_set(object, "modes", files->modes);
	if (json_object_size(files->links) > 0)
		json_object_set(object, "links", files->links);
	if (json_array_size(files->directories) > 0)
		json_object_set(object, "directories", files->directories);
	files_drop(files);
}

static int read_file(
	int dir, const char *path, struct buf *content, mode_t *ret_mode, struct err *err)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_explain(err, ERR_NOT_FOUND, NULL, NULL, "cannot open %s: %s", path,
			strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not an ordinary file", path);
	if (st.st_size > FILES_BYTES_MAX)
		return too_large(err);
	do {
		char piece[16384];

		n = read(fd, piece, sizeof(piece));
		if (n < 0)
			return err_sys(err, "read %s", path);
		buf_append(content, piece, (size_t)n);
	} while (n > 0);
	*ret_mode = st.st_mode & 0777;
	return content->failed ? too_large(err) : 0;
}

/* As a text if it is one, else in base64. */
static int add_content(
	struct files *files, const char *name, const struct buf *content, struct err *err)
{
	const char *data = content->data ? (const char *)content->data : "";
	json_t *text = memchr(data, '\0', content->len) ? NULL : json_stringn(data, content->len);
	auto_free char *encoded = NULL;

	files->bytes += content->len;
	if (files->bytes > FILES_BYTES_MAX) {
		json_decref(text);
		return too_large(err);
	}
	if (text) {
		json_object_set_new(files->texts, name, text);
		return 0;
	}
	encoded = mem_new((content->len + 2) / 3 * 4 + 1);
	EVP_EncodeBlock((unsigned char *)encoded, content->data, (int)content->len);
	json_object_set_new(files->encoded, name, json_string(encoded));
	return 0;
}

static int add_file(
	struct files *files, int dir, const char *path, const char *name, struct err *err)
{
	struct buf content = BUF_INIT(FILES_BYTES_MAX + 1);
	mode_t mode;
	int r = read_file(dir, path, &content, &mode, err);

	if (r == 0)
		r = add_content(files, name, &content, err);
	if (r == 0 && mode != 0644)
		json_object_set_new(files->modes, name, json_sprintf("%o", (unsigned)mode));
	buf_fini(&content);
	return r;
}

static int add_link(
	struct files *files, int dir, const char *path, const char *name, struct err *err)
{
	char target[LINK_MAX_LEN + 1];
	ssize_t n = readlinkat(dir, path, target, sizeof(target));

	if (n < 0)
		return err_sys(err, "read the link %s", name);
	if (n > LINK_MAX_LEN)
		return err_set(err, ERR_INVALID, "the link %s is too long", name);
	if (json_object_set_new(files->links, name, json_stringn(target, (size_t)n)) < 0)
		return err_set(err, ERR_INVALID, "the link %s is not UTF-8", name);
	return 0;
}

static bool is_left_out(void *ignored, const char *name)
{
	return ignore_list_has(ignored, name) || strcmp(name, ".dockerignore") == 0 ||
	       (strncmp(name, ".git", 4) == 0 && (!name[4] || name[4] == '/'));
}

static int add_tree(struct files *files, int dir, const char *prefix, bool keeps_empty,
	unsigned depth, struct err *err)
{
	DIR *list = fdopendir(dup(dir));
	const struct dirent *entry;
	bool is_empty = true;
	int r = 0;

	if (!list)
		return err_sys(err, "list %s", *prefix ? prefix : "the directory");
	if (depth > DEPTH_MAX)
		r = err_set(err, ERR_INVALID, "%s is too deep", prefix);
	while (r == 0 && (entry = readdir(list))) {
		auto_free char *name = mem_printf("%s%s", prefix, entry->d_name);
		auto_fd int below = -1;
		bool is_wanted = true;
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (is_left_out(files->ignored, name)) {
			/* Something in it may be wanted, and it with that. */
			if (!S_ISDIR(st.st_mode) || !ignore_list_takes_in(files->ignored))
				continue;
			is_wanted = false;
		}
		is_empty &= !is_wanted;
		if (S_ISREG(st.st_mode))
			r = add_file(files, dir, entry->d_name, name, err);
		if (S_ISLNK(st.st_mode))
			r = add_link(files, dir, entry->d_name, name, err);
		if (!S_ISDIR(st.st_mode))
			continue;
		below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0 && is_wanted) {
			r = err_sys(err, "open %s", name);
		} else if (below >= 0) {
			auto_free char *next = mem_printf("%s/", name);

			r = add_tree(files, below, next, is_wanted, depth + 1, err);
		}
	}
	closedir(list);
	if (is_empty && keeps_empty && *prefix)
		json_array_append_new(files->directories, json_stringn(prefix, strlen(prefix) - 1));
	return r;
}

/* --- bodies --- */

/* "a,b" and several options are one list. */
static void add_words(json_t *object, const char *name, const struct option_list *list)
{
	json_t *words = json_array();

	for (size_t i = 0; i < list->count; i++) {
		for (const char *at = list->items[i]; *at;) {
			size_t len = strcspn(at, ",");

			if (len > 0)
				json_array_append_new(words, json_stringn(at, len));
			at += len + (at[len] == ',');
		}
	}
	json_object_set_new(object, name, words);
}

static int add_pairs(json_t *object, const char *name, const char *option,
	const struct option_list *list, struct err *err)
{
	json_t *pairs = json_object();

	json_object_set_new(object, name, pairs);
	for (size_t i = 0; i < list->count; i++) {
		const char *equals = strchr(list->items[i], '=');
		auto_free char *key = NULL;

		if (!equals || equals == list->items[i])
			return err_set(err, ERR_INVALID, "%s takes NAME=VALUE, not %s", option,
				list->items[i]);
		key = mem_printf("%.*s", (int)(equals - list->items[i]), list->items[i]);
		json_object_set_new(pairs, key, json_string(equals + 1));
	}
	return 0;
}

static int make_recipe(
	const struct build_spec *spec, const char *name, json_t **ret_body, struct err *err)
{
	struct files files;
	json_t *recipe = json_pack("{s:s?}", "from", spec->from);
	json_auto_t *body = json_pack("{s:s, s:o}", "name", name, "recipe", recipe);
	json_t *run = json_array();
	int r;

	if (!spec->from || !recipe) {
		json_decref(run);
		return err_set(err, ERR_INVALID, "--from names the template that it begins with");
	}
	files_init(&files);
	add_words(recipe, "apt", &spec->apt);
	add_words(recipe, "apk", &spec->apk);
	add_words(recipe, "pip", &spec->pip);
	add_words(recipe, "npm", &spec->npm);
	json_object_set_new(recipe, "run", run);
	for (size_t i = 0; i < spec->run.count; i++)
		json_array_append_new(run, json_string(spec->run.items[i]));
	r = add_pairs(recipe, "env", "--env", &spec->env, err);
	if (r == 0)
		r = add_pairs(recipe, "mirrors", "--mirror", &spec->mirrors, err);
	for (size_t i = 0; i < spec->files.count && r == 0; i++) {
		const char *equals = strchr(spec->files.items[i], '=');
		auto_free char *path =
			equals ? mem_printf("%.*s", (int)(equals - spec->files.items[i]),
					 spec->files.items[i])
			       : NULL;

		r = equals ? add_file(&files, AT_FDCWD, equals + 1, path, err)
			   : err_set(err, ERR_INVALID, "--file takes PATH=FILE, not %s",
				     spec->files.items[i]);
	}
	files_give(&files, recipe);
	if (r == 0)
		*ret_body = json_incref(body);
	return r;
}

static int make_bootstrap(
	const struct build_spec *spec, const char *name, json_t **ret_body, struct err *err)
{
	json_t *bootstrap;

	if (spec->from || spec->apk.count + spec->mirrors.count + spec->pip.count +
					  spec->npm.count + spec->run.count + spec->files.count +
					  spec->env.count >
				  0)
		return err_explain(err, ERR_INVALID, NULL,
			"put more on it by another template, with --from",
			"--bootstrap makes a Debian with packages of --apt, and nothing else");
	bootstrap = json_pack("{s:s}", "suite", spec->bootstrap);
	add_words(bootstrap, "packages", &spec->apt);
	*ret_body = json_pack("{s:s, s:o}", "name", name, "bootstrap", bootstrap);
	return 0;
}

int build_spec_recipe(
	const struct build_spec *spec, const char *name, json_t **ret_body, struct err *err)
{
	return spec->bootstrap ? make_bootstrap(spec, name, ret_body, err)
			       : make_recipe(spec, name, ret_body, err);
}

static int load_text(int dir, const char *path, char **ret_text, struct err *err)
{
	struct buf content = BUF_INIT(FILES_BYTES_MAX + 1);
	mode_t mode;
	int r = read_file(dir, path, &content, &mode, err);

	if (r == 0)
		*ret_text = buf_take_str(&content);
	buf_fini(&content);
	return r;
}

int build_spec_dockerfile(const struct build_spec *spec, const char *name, const char *dir,
	json_t **ret_body, char **ret_ignored, struct err *err)
{
	struct files files;
	json_auto_t *body = json_pack("{s:s}", "name", name);
	auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *text = NULL, *ignored = NULL;
	bool are_many = false;
	struct err none;
	int r;

	if (fd < 0)
		return err_explain(
			err, ERR_NOT_FOUND, NULL, NULL, "cannot open %s: %s", dir, strerror(errno));
	files_init(&files);
	r = spec->dockerfile ? load_text(AT_FDCWD, spec->dockerfile, &text, err)
			     : load_text(fd, "Dockerfile", &text, err);
	if (r == 0 && load_text(fd, ".dockerignore", &ignored, &none) == 0)
		files.ignored = ignored;
	if (r == 0)
		r = add_tree(&files, fd, "", true, 0, err);
	are_many = r < 0 && err->kind == ERR_TOO_LARGE && text;
	if (are_many)
		files_drop(&files);
	else
		files_give(&files, body);
	if (r == 0 || are_many)
		r = add_pairs(body, "args", "--build-arg", &spec->args, err);
	if (r == 0)
		r = add_pairs(body, "mirrors", "--mirror", &spec->mirrors, err);
	if (r == 0 && spec->target &&
		json_object_set_new(body, "target", json_string(spec->target)) < 0)
		r = err_set(err, ERR_INVALID, "--target is not UTF-8");
	if (r == 0 && json_object_set_new(body, "dockerfile", json_string(text)) < 0)
		r = err_set(err, ERR_INVALID, "the Dockerfile is not UTF-8");
	if (r < 0)
		return r;
	*ret_body = json_incref(body);
	if (are_many)
		*ret_ignored = ignored ? take_ptr(&ignored) : mem_strdup("");
	return 0;
}

int build_spec_open_tree(
	const char *dir, char *ignored, struct tree_sender **ret_sender, struct err *err)
{
	int r = tree_sender_new(dir, ret_sender, err);

	if (r == 0)
		tree_sender_filter(
			*ret_sender, is_left_out, ignored, ignore_list_takes_in(ignored));
	return r;
}
