/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_source.h"

#include "base/fd.h"
#include "core/template/build/catalogue_build.h"
#include "core/template/build/template_bootstrap.h"
#include "core/template/build/template_builder.h"
#include "core/template/template_catalogue.h"
#include "core/template/template_snapshot.h"
#include "core/template/templates.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- an image of a registry --- */

static int check_image(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err)
{
	struct image_reference reference;

	(void)caller;
	return templates_parse(engine, json_string_value(value), &reference, err);
}

static int make_image(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	const char *image = json_string_value(value);
	int r = template_build_fetch(build, image, 0, ret_pulled, err);

	if (r < 0)
		template_catalogue_advise(image, err);
	return r;
}

static bool is_image_fixed(const json_t *value)
{
	return strstr(json_string_value(value), "@sha256:");
}

/* --- an archive that is a file of the server, or an OCI layout that is a directory --- */

static int check_path(const struct engine *engine, const struct caller *caller, const json_t *value,
	struct err *err)
{
	const char *path = json_string_value(value);

	(void)engine;
	if (!(caller->scopes & SCOPE_ADMIN))
		return err_explain(err, ERR_DENIED, "missing_scope",
			"send the archive itself: PUT /v1/templates/{name}/archive",
			"a file of the server is for tokens with the scope admin");
	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field archive_path must be an absolute path");
	return 0;
}

struct archive_file {
	struct template_build *build;
	int fd, dir_fd;
	uint64_t done, size;
};

/* No name leads out of the directory, nor over a link: foreign images are no way to the server's other files. */
static int open_in_layout(void *arg, const char *name, struct err *err)
{
	struct archive_file *file = arg;
	auto_fd int fd = (int)syscall(SYS_openat2, file->dir_fd, name,
		&(struct open_how){.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
			.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS},
		sizeof(struct open_how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_explain(err, ERR_INVALID, "invalid_image_archive",
			"the directory must be an OCI layout whose files the user of the daemon "
			"may "
			"read; links are not followed",
			"%.120s of the layout: %s", name,
			fd < 0 ? strerror(errno) : "it is no ordinary file");
	fd_close(file->fd);
	file->fd = take_fd(&fd);
	file->size += (uint64_t)st.st_size;
	return 0;
}

static ssize_t read_archive(void *arg, void *data, size_t size)
{
	struct archive_file *file = arg;
	ssize_t n;

	if (job_must_stop(file->build->job))
		return -ECANCELED;
	n = read(file->fd, data, size);
	if (n < 0)
		return -errno;
	file->done += (uint64_t)n;
	job_progress(file->build->job, file->done, file->size, "reading the archive");
	return n;
}

static int make_path(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	const char *path = json_string_value(value);
	/* Without O_NONBLOCK a pipe of that name would hold the job for ever. */
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct archive_file file = {.build = build, .fd = -1, .dir_fd = fd};
	struct image_source source = {.read = read_archive, .arg = &file};
	struct image_pull pull = template_build_pull(build);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_explain(err, ERR_NOT_FOUND, "archive_not_found",
			"the file must be readable for the user of the daemon",
			"cannot open %.200s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		source.open = open_in_layout;
	} else if (S_ISREG(st.st_mode)) {
		file.fd = take_fd(&fd);
		file.size = (uint64_t)st.st_size;
	} else {
		return err_explain(err, ERR_INVALID, "invalid_archive", NULL,
			"%.200s is neither an ordinary file nor a directory", path);
	}
	r = image_pull_archive(&pull, &source, NULL, ret_pulled, err);
	fd_close(file.fd);
	return r;
}

/* --- a snapshot --- */

static bool is_snapshot_fixed(const json_t *value)
{
	(void)value;
	return true;
}

/* --- the table --- */

static const struct template_source sources[] = {
	{"image", check_image, make_image, is_image_fixed},
	{"archive", NULL, NULL, NULL}, /* the body of a request: templates_import() */
	{"archive_path", check_path, make_path, NULL},
	{"snapshot", template_snapshot_check, template_snapshot_make, is_snapshot_fixed},
	{"recipe", template_builder_check_recipe, template_builder_make_recipe, NULL},
	{"dockerfile", template_builder_check_dockerfile, template_builder_make_dockerfile, NULL},
	{"bootstrap", template_bootstrap_check, template_bootstrap_make, NULL},
	{"catalogue", catalogue_build_check, catalogue_build_make, NULL},
};

const struct template_source *template_source_of(const json_t *source, const json_t **ret_value)
{
	for (size_t i = 0; i < array_len(sources); i++) {
		const json_t *value = json_object_get(source, sources[i].kind);

		if (value) {
			*ret_value = value;
			return &sources[i];
		}
	}
	return NULL;
}

int template_source_check(const struct engine *engine, const struct caller *caller,
	const json_t *source, struct err *err)
{
	const json_t *value;
	const struct template_source *kind = template_source_of(source, &value);

	if (!kind || !kind->check || json_object_size(source) != 1)
		return err_explain(err, ERR_INVALID, "invalid_source",
			"say what it is made of in one field: image, for one",
			"a template is made of one source");
	return kind->check(engine, caller, value, err);
}

int template_source_make(struct template_build *build, const json_t *source,
	struct image_pulled *ret_pulled, struct err *err)
{
	const json_t *value = NULL;
	const struct template_source *kind = template_source_of(source, &value);

	if (!kind || !kind->make)
		return err_explain(err, ERR_INVALID, "invalid_source", NULL,
			"the template cannot be built: there is no such source");
	return kind->make(build, value, ret_pulled, err);
}
