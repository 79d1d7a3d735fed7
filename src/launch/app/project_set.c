/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/project_set.h"

#include "base/buf.h"
#include "base/fd.h"
#include "launch/app/made_files.h"
#include "store/work/store_project.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_MAX (64u << 20)

_Static_assert(FILE_SET_PATHS_MAX >= STORE_PROJECT_FILES_MAX, "each file of a project has a place");

/* What its `arg` is. */
struct project_files {
	struct projects *projects;
	char project[ID_LEN + 1];
	struct file_set *set; /* that is being filled */
	struct buf lines;
	char made
		[PROJECT_PATH_MAX]; /* the last directory that installing made, which was left out */
	bool is_cut;		    /* there are more than can be */
};

/* Of a directory that installing makes one file is in the set, so that it can be said; none is copied. */
static bool add_file(const struct project_file *file, void *arg)
{
	struct project_files *files = arg;
	size_t made = made_files_named(file->path);

	if (made > 0 && strncmp(files->made, file->path, made) == 0 && !files->made[made])
		return true;
	if (made > 0)
		snprintf(files->made, sizeof(files->made), "%.*s", (int)made, file->path);
	else if (buf_printf(&files->lines, "%s %s\n", file->sha256, file->path) < 0)
		files->is_cut = true;
	files->is_cut |= !file_set_add(files->set, file->path);
	return !files->is_cut;
}

static char *read_file(void *arg, const char *path)
{
	struct project_files *files = arg;
	auto_free struct project_file *file = mem_new(sizeof(*file));
	auto_fd int fd = -1;
	struct err ignored;
	char *text;
	const struct projects_config *config = projects_config_of(files->projects);

	if (store_project_file_get(config->store, files->project, path, file, &ignored) < 0 ||
		file->bytes > FILE_SET_TEXT_MAX ||
		projects_open_file(files->projects, files->project, file, &fd, &ignored) < 0)
		return NULL;
	text = mem_new(file->bytes + 1);
	if (fd_read_full(fd, text, file->bytes) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void release_files(void *arg)
{
	struct project_files *files = arg;

	buf_fini(&files->lines);
	free(files);
}

int project_set_open(struct projects *projects, const struct owner *owner, const char *project,
	struct file_set *ret_set, struct err *err)
{
	struct project_files *files = mem_new(sizeof(*files));
	struct store *store = projects_config_of(projects)->store;
	struct file_set set = {.read = read_file, .release = release_files, .arg = files};
	struct project_record record;
	int r = store_project_get(store, owner, project, &record, err);

	if (r < 0) {
		free(files);
		return r;
	}
	*files = (struct project_files){
		.projects = projects, .set = &set, .lines = BUF_INIT(LIST_MAX)};
	snprintf(files->project, sizeof(files->project), "%s", record.id);
	project_record_fini(&record);
	r = store_project_file_list(
		store, files->project, "", STORE_PROJECT_FILES_MAX, add_file, files, err);
	files->set = NULL;
	if (r == 0 && files->is_cut)
		r = err_explain(err, ERR_TOO_LARGE, "too_many_files", "remove some",
			FILE_SET_TOO_MANY, FILE_SET_PATHS_MAX);
	if (r < 0) {
		file_set_fini(&set);
		return r;
	}
	file_set_sort(&set);
	*ret_set = set;
	return 0;
}

char *project_set_list(const struct file_set *set)
{
	const struct project_files *files = set->arg;
	auto_free char *all =
		mem_printf("%.*s", (int)files->lines.len, (const char *)files->lines.data);
	struct buf kept = BUF_INIT(LIST_MAX);
	char *state = NULL;

	/* Which environments there are is known only when all files are. */
	for (char *line = strtok_r(all, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		if (made_files_length(set, line + PROJECT_SHA256_LEN + 1) == 0)
			buf_printf(&kept, "%s\n", line);
	}
	return buf_take_str(&kept);
}
