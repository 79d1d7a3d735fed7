/* SPDX-License-Identifier: Apache-2.0 */
#include "core/project/projects.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/sandbox_state.h"
#include "core/project/file_type.h"
#include "core/project/project_tree.h"
#include "store/store_clock.h"
#include "store/work/store_project.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCKS	       64
#define GONE_SUFFIX    ".gone" /* of the directory of a project that is being removed */
#define MISSING_LIST   100
#define READ_SIZE      (256u << 10) /* of content that is verified */
#define READ_NAP_BYTES (8u << 20)   /* after so many bytes it rests */
#define READ_NAP_MS    5

struct projects {
	struct projects_config config;
	struct file_types *types;
	pthread_mutex_t locks[LOCKS]; /* of projects, by a hash of their ids */
};

struct projects *projects_new(const struct projects_config *config)
{
	struct projects *projects = mem_new(sizeof(*projects));

	projects->config = *config;
	projects->types = file_types_new();
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&projects->locks[i], NULL);
	return projects;
}

void projects_free(struct projects *projects)
{
	if (!projects)
		return;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&projects->locks[i]);
	file_types_free(projects->types);
	free(projects);
}

const struct projects_config *projects_config_of(const struct projects *projects)
{
	return &projects->config;
}

struct file_types *projects_file_types(struct projects *projects)
{
	return projects->types;
}

static pthread_mutex_t *lock_of(struct projects *projects, const char *id)
{
	unsigned hash = 2166136261u;

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return &projects->locks[(hash ^ hash >> 16) % LOCKS];
}

void projects_lock(struct projects *projects, const char *id)
{
	pthread_mutex_lock(lock_of(projects, id));
}

void projects_unlock(struct projects *projects, const char *id)
{
	pthread_mutex_unlock(lock_of(projects, id));
}

void projects_publish(struct projects *projects, const struct project_record *record)
{
	json_auto_t *event = json_pack("{s:s, s:s}", "project", record->id, "name", record->name);
	auto_free char *text = json_dumps(event, JSON_COMPACT);

	if (text && projects->config.bus)
		event_bus_publish(
			projects->config.bus, &record->owner, record->id, "project.files", text);
}

static int open_tree(
	struct projects *projects, const char *id, struct project_tree *ret_tree, struct err *err)
{
	return project_tree_open(
		projects->config.dir_fd, id, projects->config.disk_reserve, ret_tree, err);
}

/* --- projects --- */

int projects_create(struct projects *projects, const struct owner *owner, const char *name,
	const json_t *labels, const json_t *defaults, struct project_record *ret_record,
	struct err *err)
{
	struct project_record record = {.owner = *owner,
		.labels = labels ? json_deep_copy(labels) : json_object(),
		.defaults = defaults ? json_deep_copy(defaults) : json_object(),
		.created_at_ms = store_clock_ms(projects->config.store)};
	int r = 0;

	record.updated_at_ms = record.created_at_ms;
	if (!project_name_is_valid(name))
		r = err_explain(err, ERR_INVALID, "invalid_name", "choose another name",
			"a project's name has 1 to 63 characters of a-z A-Z 0-9 . _ - and not the "
			"form of an id");
	if (r == 0) {
		id_new(clock_wall_ms(), record.id);
		snprintf(record.name, sizeof(record.name), "%s", name);
		r = store_project_insert(projects->config.store, &record, err);
	}
	if (r < 0)
		project_record_fini(&record);
	else
		*ret_record = record;
	return r;
}

int projects_take(struct projects *projects, const struct owner *owner, const char *text,
	struct project_record *ret_record, struct err *err)
{
	int r = store_project_get(projects->config.store, owner, text, ret_record, err);

	/* What has the form of an id means one that is there. */
	if (r != -ENOENT || id_is_valid(text))
		return r;
	r = projects_create(projects, owner, text, NULL, NULL, ret_record, err);
	/* Somebody else was faster. */
	if (r == -EEXIST)
		r = store_project_get(projects->config.store, owner, text, ret_record, err);
	return r;
}

static void replace(json_t **place, const json_t *value)
{
	if (!value)
		return;
	json_decref(*place);
	*place = json_deep_copy(value);
}

int projects_change(struct projects *projects, const struct owner *owner, const char *text,
	const struct project_change *change, struct project_record *ret_record, struct err *err)
{
	struct project_record record;
	int r = store_project_get(projects->config.store, owner, text, &record, err);

	if (r < 0)
		return r;
	if (change->name && strcmp(change->name, record.name) != 0 &&
		!project_name_is_valid(change->name))
		r = err_explain(err, ERR_INVALID, "invalid_name", "choose another name",
			"a project's name has 1 to 63 characters of a-z A-Z 0-9 . _ - and not the "
			"form of an id");
	if (r == 0) {
		if (change->name)
			snprintf(record.name, sizeof(record.name), "%s", change->name);
		replace(&record.labels, change->labels);
		replace(&record.defaults, change->defaults);
		record.updated_at_ms = store_clock_ms(projects->config.store);
		r = store_project_update(projects->config.store, &record, err);
	}
	if (r < 0)
		project_record_fini(&record);
	else
		*ret_record = record;
	return r;
}

/* The directory is set aside first: without that mark nothing that no row knows is removed. */
static int remove_locked(
	struct projects *projects, const struct project_record *record, struct err *err)
{
	int dir_fd = projects->config.dir_fd;
	char gone[ID_LEN + sizeof(GONE_SUFFIX)];
	bool is_aside;
	int r;

	snprintf(gone, sizeof(gone), "%s" GONE_SUFFIX, record->id);
	is_aside = renameat(dir_fd, record->id, dir_fd, gone) == 0;
	if (!is_aside && errno != ENOENT)
		return err_sys(err, "set the files of project %s aside", record->name);
	fail_point("project.set_aside");
	r = store_project_delete(projects->config.store, &record->owner, record->id, err);
	fail_point("project.row_deleted");
	if (r < 0 && is_aside && renameat(dir_fd, gone, dir_fd, record->id) < 0)
		log_error("the files of project %s are aside in %s: %s", record->id, gone,
			strerror(errno));
	if (r == 0 && is_aside)
		r = project_tree_remove(dir_fd, gone, err);
	return r;
}

int projects_remove(
	struct projects *projects, const struct owner *owner, const char *text, struct err *err)
{
	struct project_record record;
	int r = store_project_get(projects->config.store, owner, text, &record, err);

	if (r < 0)
		return r;
	projects_lock(projects, record.id);
	r = remove_locked(projects, &record, err);
	projects_unlock(projects, record.id);
	project_record_fini(&record);
	return r;
}

/* --- files --- */

void projects_drop_content(
	struct projects *projects, const char *id, struct project_tree *tree, const char *sha256)
{
	struct digest digest = project_tree_digest(sha256);
	struct err err;
	int r = store_project_uses(projects->config.store, id, sha256, &err);

	if (r == 0)
		r = blob_store_remove(tree->blobs, &digest, &err);
	if (r < 0)
		log_warning("project %s: %s", id, err.message);
}

int projects_open_file(struct projects *projects, const char *project,
	const struct project_file *file, int *ret_fd, struct err *err)
{
	struct digest digest = project_tree_digest(file->sha256);
	struct project_tree tree;
	int r = open_tree(projects, project, &tree, err);

	if (r < 0)
		return r;
	r = blob_store_read(tree.blobs, &digest, ret_fd, err);
	if (r == -ENOENT)
		r = err_explain(err, ERR_CONFLICT, "content_missing", "upload the file again",
			"the content of %.200s is not on disk any more", file->path);
	project_tree_close(&tree);
	return r;
}

int projects_delete_file(struct projects *projects, const struct project_record *record,
	const struct project_file *file, struct err *err)
{
	struct project_tree tree;
	int r;

	projects_lock(projects, record->id);
	r = open_tree(projects, record->id, &tree, err);
	if (r == 0) {
		r = store_project_file_delete(projects->config.store, record->id, file->id, err);
		fail_point("project.file_deleted");
		if (r == 0) {
			project_tree_drop(&tree, file->path);
			projects_drop_content(projects, record->id, &tree, file->sha256);
		}
		project_tree_close(&tree);
	}
	projects_unlock(projects, record->id);
	if (r == 0)
		projects_publish(projects, record);
	return r;
}

static int move_locked(struct projects *projects, const struct project_record *record,
	const struct project_file *file, const char *path, struct project_file *ret_file,
	struct err *err)
{
	struct project_tree tree;
	int r = open_tree(projects, record->id, &tree, err);

	if (r < 0)
		return r;
	r = store_project_file_move(projects->config.store, record->id, file->id, path, err);
	fail_point("project.file_moved");
	if (r == 0) {
		project_tree_drop(&tree, file->path);
		*ret_file = *file;
		snprintf(ret_file->path, sizeof(ret_file->path), "%s", path);
		r = project_tree_put(&tree, ret_file, err);
	}
	project_tree_close(&tree);
	return r;
}

int projects_move_file(struct projects *projects, const struct project_record *record,
	const struct project_file *file, const char *path, struct project_file *ret_file,
	struct err *err)
{
	const char *problem = project_path_problem(path);
	int r;

	if (problem)
		return err_explain(err, ERR_INVALID, "invalid_path", NULL, "a path %s", problem);
	projects_lock(projects, record->id);
	r = move_locked(projects, record, file, path, ret_file, err);
	projects_unlock(projects, record->id);
	if (r == 0)
		projects_publish(projects, record);
	return r;
}

/* --- sandboxes --- */

int projects_show(struct sandbox *sandbox, struct err *err)
{
	struct projects *projects = sandbox->engine->config.projects;
	struct driver *driver = sandbox->engine->config.driver;
	struct project_record record;
	struct project_tree tree;
	int r;

	if (!projects || !sandbox->record.project[0])
		return 0;
	/* It may have been removed between the request for the sandbox and its row. */
	r = projects_take(projects, &sandbox->record.owner, sandbox->record.project, &record, err);
	if (r < 0)
		return r;
	if (!driver_can(driver, DRIVER_PROJECT_FILES)) {
		if (record.files > 0)
			r = capability_need(driver, DRIVER_PROJECT_FILES, err);
	} else {
		r = open_tree(projects, record.id, &tree, err);
		if (r == 0) {
			project_tree_close(&tree);
			r = driver->ops->show_project(driver, sandbox->id, record.id, err);
		}
	}
	project_record_fini(&record);
	return r;
}

/* --- what a crash left --- */

struct scrubbing {
	struct projects *projects;
	struct projects_scrub *scrub;
	bool is_start; /* nobody writes */
	const struct project_record *record;
	struct project_tree tree;
	json_t *damaged; /* hashes of contents that are others, as keys; owned */
	int r;
	struct err *err;
};

static bool is_content(int fd, const struct digest *digest)
{
	auto_(digest_stream_freep) struct digest_stream *stream = digest_stream_new();
	auto_free char *data = mem_new(READ_SIZE);
	struct digest found;
	uint64_t total = 0;
	ssize_t n;

	while ((n = read(fd, data, READ_SIZE)) > 0) {
		digest_stream_add(stream, data, (size_t)n);
		total += (uint64_t)n;
		/* Whoever needs disk and processor meanwhile is not to wait for this. */
		if (total % READ_NAP_BYTES < READ_SIZE)
			poll(NULL, 0, READ_NAP_MS);
	}
	digest_stream_read(stream, &found);
	return n == 0 && digest_equals(&found, digest);
}

/* No lock is held: what is read never changes, and may go meanwhile. */
static int verify_blob(void *arg, const struct digest *digest, uint64_t size)
{
	struct scrubbing *scrubbing = arg;
	auto_fd int fd = -1;
	struct err ignored;

	(void)size;
	if (blob_store_read(scrubbing->tree.blobs, digest, &fd, &ignored) == 0 &&
		!is_content(fd, digest))
		json_object_set_new(scrubbing->damaged, digest_hex(digest), json_true());
	return 0;
}

static bool is_damaged(const struct scrubbing *scrubbing, const struct project_file *file,
	const struct digest *digest)
{
	auto_fd int fd = -1;
	struct err ignored;
	struct stat st;

	return json_object_get(scrubbing->damaged, file->sha256) ||
	       (blob_store_read(scrubbing->tree.blobs, digest, &fd, &ignored) == 0 &&
		       fstat(fd, &st) == 0 && (uint64_t)st.st_size != file->bytes);
}

static int scrub_blob(void *arg, const struct digest *digest, uint64_t size)
{
	struct scrubbing *scrubbing = arg;
	struct store *store = scrubbing->projects->config.store;
	int r = store_project_uses(
		store, scrubbing->record->id, digest_hex(digest), scrubbing->err);

	(void)size;
	if (r == 0) {
		r = blob_store_remove(scrubbing->tree.blobs, digest, scrubbing->err);
		scrubbing->scrub->blobs_removed += r == 0;
		return r;
	}
	return r < 0 ? r : 0;
}

static void note_missing(struct scrubbing *scrubbing, const struct project_file *file)
{
	struct projects_scrub *scrub = scrubbing->scrub;

	scrub->missing++;
	log_error("the content of %s in project %s is missing", file->path, scrubbing->record->id);
	if (json_array_size(scrub->missing_files) < MISSING_LIST)
		json_array_append_new(scrub->missing_files,
			json_pack("{s:s, s:s, s:s}", "project", scrubbing->record->id, "path",
				file->path, "sha256", file->sha256));
}

static bool scrub_file(const struct project_file *file, void *arg)
{
	struct scrubbing *scrubbing = arg;
	struct digest digest = project_tree_digest(file->sha256);

	scrubbing->scrub->files++;
	if (!blob_store_has(scrubbing->tree.blobs, &digest)) {
		note_missing(scrubbing, file);
	} else if (is_damaged(scrubbing, file, &digest)) {
		/* Without its name it is written anew when it is uploaded. What sandboxes see stays until then. */
		log_error("the content of %s in project %s is not what its hash says", file->path,
			scrubbing->record->id);
		scrubbing->r = blob_store_remove(scrubbing->tree.blobs, &digest, scrubbing->err);
		scrubbing->scrub->damaged++;
		note_missing(scrubbing, file);
	} else if (!project_tree_has(&scrubbing->tree, file)) {
		scrubbing->r = project_tree_put(&scrubbing->tree, file, scrubbing->err);
		scrubbing->scrub->links_made += scrubbing->r == 0;
	}
	return scrubbing->r == 0;
}

static int has_row(void *arg, const char *path)
{
	struct scrubbing *scrubbing = arg;
	struct project_file file;
	int r = store_project_file_get(scrubbing->projects->config.store, scrubbing->record->id,
		path, &file, scrubbing->err);

	/* A file's id is no path. */
	if (r == 0)
		return strcmp(file.path, path) == 0;
	return r == -ENOENT ? 0 : r;
}

static int scrub_tree(struct scrubbing *scrubbing)
{
	struct store *store = scrubbing->projects->config.store;
	struct project_tree *tree = &scrubbing->tree;
	int r;

	if (scrubbing->is_start) {
		blob_store_drop_ready(tree->blobs);
		blob_store_sweep(tree->blobs, INT64_MAX);
	}
	r = project_tree_prune(tree, has_row, scrubbing);
	if (r > 0)
		scrubbing->scrub->links_removed += (uint64_t)r;
	if (r >= 0)
		r = blob_store_walk(tree->blobs, scrub_blob, scrubbing, scrubbing->err);
	if (r == 0)
		r = store_project_file_list(store, scrubbing->record->id, "", UINT_MAX, scrub_file,
			scrubbing, scrubbing->err);
	return r < 0 ? r : scrubbing->r;
}

static bool scrub_project(const struct project_record *record, void *arg)
{
	struct scrubbing *scrubbing = arg;
	struct projects *projects = scrubbing->projects;

	scrubbing->scrub->projects++;
	/* One that never had a file has no directory. */
	if (faccessat(projects->config.dir_fd, record->id, F_OK, 0) < 0 && record->files == 0)
		return true;
	scrubbing->record = record;
	projects_lock(projects, record->id);
	scrubbing->r = open_tree(projects, record->id, &scrubbing->tree, scrubbing->err);
	if (scrubbing->r < 0) {
		projects_unlock(projects, record->id);
		return false;
	}
	scrubbing->damaged = json_object();
	/* A start is not to take as long as to read all that there is. */
	if (!scrubbing->is_start) {
		projects_unlock(projects, record->id);
		(void)!blob_store_walk(
			scrubbing->tree.blobs, verify_blob, scrubbing, scrubbing->err);
		projects_lock(projects, record->id);
	}
	scrubbing->r = scrub_tree(scrubbing);
	json_decref(scrubbing->damaged);
	project_tree_close(&scrubbing->tree);
	projects_unlock(projects, record->id);
	return scrubbing->r == 0;
}

static int is_known(struct projects *projects, const char *id, struct err *err)
{
	struct project_record record;
	int r = store_project_get(projects->config.store, NULL, id, &record, err);

	if (r == 0)
		project_record_fini(&record);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

/* A removal that was cut short is finished if its row is gone, else undone. */
static int settle_gone(struct projects *projects, const char *name, struct err *err)
{
	int dir_fd = projects->config.dir_fd, r;
	char id[ID_LEN + 1];

	snprintf(id, sizeof(id), "%s", name);
	r = is_known(projects, id, err);
	if (r == 0)
		return project_tree_remove(dir_fd, name, err);
	if (r > 0 && renameat(dir_fd, name, dir_fd, id) < 0)
		return err_sys(err, "give project %s its files back", id);
	return r < 0 ? r : 0;
}

/* Looks at the directories, known or not. */
static int look_at_dirs(struct scrubbing *scrubbing, struct err *err)
{
	struct projects *projects = scrubbing->projects;
	int fd = openat(projects->config.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!list) {
		fd_close(fd);
		return err_sys(err, "list the files of projects");
	}
	while (r >= 0 && (entry = readdir(list))) {
		const char *name = entry->d_name;

		if (strlen(name) == ID_LEN + strlen(GONE_SUFFIX) &&
			strcmp(name + ID_LEN, GONE_SUFFIX) == 0) {
			if (scrubbing->is_start)
				r = settle_gone(projects, name, err);
		} else if (id_is_valid(name)) {
			r = is_known(projects, name, err);
			scrubbing->scrub->unknown += r == 0;
		}
	}
	closedir(list);
	return r < 0 ? r : 0;
}

static int scrub_all(
	struct projects *projects, bool is_start, struct projects_scrub *ret_scrub, struct err *err)
{
	struct projects_scrub scrub = {.missing_files = json_array()};
	struct scrubbing scrubbing = {
		.projects = projects, .scrub = &scrub, .is_start = is_start, .err = err};
	int r = look_at_dirs(&scrubbing, err);

	if (r == 0)
		r = store_project_list(
			projects->config.store, NULL, "", UINT_MAX, scrub_project, &scrubbing, err);
	if (r == 0)
		r = scrubbing.r;
	if (r < 0)
		json_decref(scrub.missing_files);
	else
		*ret_scrub = scrub;
	return r;
}

int projects_scrub(struct projects *projects, struct projects_scrub *ret_scrub, struct err *err)
{
	return scrub_all(projects, false, ret_scrub, err);
}

int projects_settle(struct projects *projects, struct err *err)
{
	struct projects_scrub scrub;
	int r = scrub_all(projects, true, &scrub, err);

	if (r < 0)
		return r;
	if (scrub.blobs_removed + scrub.links_made + scrub.links_removed + scrub.missing > 0)
		log_warning("projects: %llu blobs without a file and %llu links were removed, %llu "
			    "links made; the content of %llu files is missing",
			(unsigned long long)scrub.blobs_removed,
			(unsigned long long)scrub.links_removed,
			(unsigned long long)scrub.links_made, (unsigned long long)scrub.missing);
	if (scrub.unknown > 0)
		log_warning("the database does not know %llu directories of projects; they stay",
			(unsigned long long)scrub.unknown);
	json_decref(scrub.missing_files);
	return 0;
}
