/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/project/launch_watch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "cli/copy/transfer.h"
#include "cli/remote/query.h"
#include "cli/terminal/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APP	   "/workspace/app"
#define QUIET_MS   150	/* without another change: the edit is over */
#define GATHER_MS  2000 /* no longer than that */
#define TARGET_MAX (4u * PATH_MAX)

/* Files that say what is installed, or how the app is started. */
static const char *const launch_files[] = {"package.json", "package-lock.json",
	"npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", ".npmrc",
	"requirements.txt", "pyproject.toml", "uv.lock", "poetry.lock", "Pipfile", "Pipfile.lock",
	"sandlot.json", ".env", NULL};

/* --- what an edit needs --- */

static bool is_listed(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return len == 0 || (strncmp(path, dir, len) == 0 && path[len] == '/');
}

/* What serves a part may load changed files by itself; else it has to be started again. */
static bool is_of_cold_part(const json_t *launch, const char *path)
{
	json_t *parts = json_object_get(json_object_get(launch, "detection"), "parts"), *part;
	const json_t *found = NULL, *hot;
	size_t longest = 0, i;

	json_array_foreach(parts, i, part)
	{
		const char *dir = cli_text(part, "directory");

		if (is_below(path, dir) && (!found || strlen(dir) > longest)) {
			found = part;
			longest = strlen(dir);
		}
	}
	hot = json_object_get(found, "hot");
	return json_is_boolean(hot) ? json_is_false(hot)
				    : strcmp(cli_text(found, "role"), "backend") == 0;
}

/* The copy in the sandbox is not the file itself: it was mended. */
static bool is_fixed(const json_t *launch, const char *path)
{
	json_t *findings = json_object_get(launch, "findings"), *finding;
	size_t i;

	json_array_foreach(findings, i, finding)
	{
		if (json_is_string(json_object_get(finding, "diff")) &&
			strcmp(cli_text(finding, "file"), path) == 0)
			return true;
	}
	return false;
}

bool launch_watch_needs_launch(const json_t *launch, const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(cli_text(launch, "status"), "succeeded") != 0 ||
	       is_listed(launch_files, slash ? slash + 1 : path) || is_of_cold_part(launch, path) ||
	       is_fixed(launch, path);
}

/* Files that editors keep beside the one that is edited. */
static bool is_of_editor(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	return len == 0 || name[len - 1] == '~' || strncmp(name, ".#", 2) == 0 ||
	       strcmp(name, "4913") == 0 || (len > 4 && strncmp(name + len - 4, ".sw", 3) == 0);
}

/* --- sending --- */

static char *file_target(const struct launch_watch *watch, const char *path, bool is_named)
{
	struct buf target = BUF_INIT(TARGET_MAX);

	buf_printf(&target, "/v1/projects/%s/files%s", watch->project, is_named ? "/" : "");
	if (is_named)
		query_escape(&target, path);
	else
		query_add(&target, "path", path);
	if (!is_named)
		query_add(&target, "sync", "true");
	return buf_take_str(&target);
}

static int send_file(
	struct launch_watch *watch, const char *path, int fd, bool is_copied, struct err *err)
{
	auto_free char *target = file_target(watch, path, false);
	auto_free char *place = mem_printf(APP "/%s", path);
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", path);
	if (st.st_mode & S_IXUSR) {
		auto_free char *executable = mem_printf("%s&executable=true", target);

		r = transfer_send_fd(watch->client, executable, fd, NULL, err);
	} else {
		r = transfer_send_fd(watch->client, target, fd, NULL, err);
	}
	if (r < 0 || !is_copied)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "%s", path);
	return transfer_put_fd(watch->client, cli_text(watch->launch, "sandbox_id"), place, fd,
		st.st_mode & 0777, err);
}

static int delete_one(struct launch_watch *watch, const char *target, struct err *err)
{
	int r = client_json(watch->client,
		&(struct client_call){.method = "DELETE", .path = target}, NULL, err);

	return r < 0 && err->kind == ERR_NOT_FOUND ? 1 : r;
}

/* The files of the project below a directory that is gone. */
static int delete_below(struct launch_watch *watch, const char *dir, struct err *err)
{
	auto_free char *cursor = mem_strdup("");
	int r = 1;

	while (cursor) {
		auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
		json_auto_t *page = NULL;
		json_t *file;
		size_t i;

		buf_printf(&target, "/v1/projects/%s/files", watch->project);
		query_add(&target, "cursor", cursor[0] ? cursor : NULL);
		buf_append(&target, "", 1);
		if (client_json(watch->client,
			    &(struct client_call){
				    .method = "GET", .path = (const char *)target.data},
			    &page, err) < 0)
			return -EIO;
		json_array_foreach(json_object_get(page, "files"), i, file)
		{
			auto_free char *one = file_target(watch, cli_text(file, "path"), true);

			if (is_below(cli_text(file, "path"), dir) &&
				(r = delete_one(watch, one, err)) < 0)
				return r;
		}
		free(cursor);
		cursor = cli_text(page, "next_cursor")[0]
				 ? mem_strdup(cli_text(page, "next_cursor"))
				 : NULL;
	}
	return r;
}

static int delete_in_sandbox(
	struct launch_watch *watch, const char *path, bool is_whole, struct err *err)
{
	auto_free char *place = mem_printf(APP "/%s", path);
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);

	buf_printf(&target, "/v1/sandboxes/%s/files", cli_text(watch->launch, "sandbox_id"));
	query_add(&target, "path", place);
	query_add(&target, "recursive", is_whole ? "true" : NULL);
	buf_append(&target, "", 1);
	return delete_one(watch, (const char *)target.data, err);
}

/* A directory whose files were removed before it. One that the app has put files into stays. */
static void delete_empty(struct launch_watch *watch, const char *path)
{
	auto_free char *place = mem_printf(APP "/%s", path);
	struct transfer_stat stat;
	struct err ignored;

	if (transfer_stat(watch->client, cli_text(watch->launch, "sandbox_id"), place, &stat,
		    &ignored) == 0 &&
		stat.is_dir)
		(void)!delete_in_sandbox(watch, path, false, &ignored);
}

/* 1: the project has not had it. */
static int remove_path(
	struct launch_watch *watch, const char *path, bool is_copied, struct err *err)
{
	auto_free char *target = file_target(watch, path, true);
	int r = delete_one(watch, target, err);

	if (r == 1)
		r = delete_below(watch, path, err);
	if (r == 1 && is_copied)
		delete_empty(watch, path);
	if (r != 0 || !is_copied)
		return r;
	r = delete_in_sandbox(watch, path, true, err);
	return r < 0 ? r : 0;
}

/* One path as it is now. What cannot be sent is told, and the others go on. */
static void sync_path(struct launch_watch *watch, const char *path, bool is_copied)
{
	auto_free char *whole = mem_printf("%s/%s", watch->dir, path);
	auto_fd int fd = open(whole, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st = {0};
	struct err err;
	int r;

	if (fd < 0 && errno == ENOENT) {
		r = remove_path(watch, path, is_copied, &err);
		if (r == 0)
			cli_note("removed %s", path);
	} else if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		return;
	} else {
		r = send_file(watch, path, fd, is_copied, &err);
		if (r == 0) {
			char size[FORMAT_SIZE_LEN];

			format_size((uint64_t)st.st_size, size);
			cli_note("synced %s (%s)", path, size);
		}
	}
	if (r < 0)
		cli_complain(&err, path);
}

/* --- the loop --- */

static int sync_changes(struct launch_watch *watch, struct err *err)
{
	bool is_lost, needs_launch;
	json_auto_t *changed = dir_watch_take(watch->files, &is_lost);
	const char *path;
	json_t *ignored;

	needs_launch = is_lost;
	if (is_lost) {
		auto_free char *target =
			mem_printf("/v1/projects/%s/archive?sync=true", watch->project);
		int r = transfer_send_project(watch->client, target, watch->dir, NULL, err);

		if (r < 0)
			return r;
	}
	json_object_foreach(changed, path, ignored)
	{
		if (!is_of_editor(path))
			needs_launch |= launch_watch_needs_launch(watch->launch, path);
	}
	json_object_foreach(changed, path, ignored)
	{
		/* A launch copies all of them itself. */
		if (!is_of_editor(path))
			sync_path(watch, path, !needs_launch);
	}
	return needs_launch ? watch->again(watch->arg, err) : 0;
}

/* Until the edit is over. */
static int gather(struct launch_watch *watch, struct interrupt *interrupt, struct err *err)
{
	uint64_t until_ms = clock_steady_ms() + GATHER_MS;
	int r;

	do {
		r = dir_watch_gather(watch->files, err);
		if (r == 0)
			r = interrupt_wait(
				interrupt, dir_watch_fd(watch->files), POLLIN, QUIET_MS, err);
	} while (r == 1 && clock_steady_ms() < until_ms);
	return r < 0 ? r : 0;
}

int launch_watch_run(struct launch_watch *watch, struct err *err)
{
	struct interrupt *interrupt = client_interrupt(watch->client);
	int r = interrupt_hold(interrupt, err);

	if (r < 0)
		return r;
	interrupt_watch(interrupt, true);
	cli_note("watching %s; Ctrl-C ends that, and the app stays", watch->dir);
	while (r == 0) {
		r = interrupt_wait(interrupt, dir_watch_fd(watch->files), POLLIN, -1, err);
		if (r >= 0)
			r = gather(watch, interrupt, err);
		if (r == 0)
			r = sync_changes(watch, err);
	}
	interrupt_watch(interrupt, false);
	return interrupt->signal ? 0 : r;
}
