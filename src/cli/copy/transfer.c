/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/transfer.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/copy/new_file.h"
#include "cli/copy/progress.h"
#include "cli/copy/tree.h"
#include "cli/copy/tree_writer.h"
#include "cli/remote/query.h"
#include "cli/terminal/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK	     (64u * 1024)
#define TARGET_MAX   (4u * PATH_MAX)
#define PERMISSIONS  0777
#define DEFAULT_MODE 0666

/* Something is read from, its bytes are counted. */
struct counted {
	struct progress progress;
	ssize_t (*read)(void *arg, void *data, size_t size, struct err *err);
	void *arg;
};

static ssize_t counted_read(void *arg, void *data, size_t size, struct err *err)
{
	struct counted *counted = arg;
	ssize_t n = counted->read(counted->arg, data, size, err);

	if (n > 0)
		progress_add(&counted->progress, (uint64_t)n);
	return n;
}

static ssize_t read_client(void *arg, void *data, size_t size, struct err *err)
{
	return client_read(arg, data, size, err);
}

static ssize_t read_fd(void *arg, void *data, size_t size, struct err *err)
{
	const int *fd = arg;
	ssize_t n;

	do {
		n = read(*fd, data, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, "read the file to copy") : n;
}

/* The request's path: /v1/sandboxes/{id}/files{what}?path={path}[&mode={mode}]. */
static int build_target(const char *id, const char *what, const char *path, mode_t mode, char **ret,
	struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_MAX);
	char octal[8];

	buf_printf(&target, "/v1/sandboxes/%s/files%s", id, what);
	query_add(&target, "path", path);
	snprintf(octal, sizeof(octal), "%o", (unsigned)mode & PERMISSIONS);
	query_add(&target, "mode", mode ? octal : NULL);
	if (target.failed)
		return err_set(err, ERR_INVALID, "the path is too long");
	*ret = buf_take_str(&target);
	return 0;
}

int transfer_stat(struct client *client, const char *id, const char *path,
	struct transfer_stat *ret, struct err *err)
{
	auto_free char *target = NULL;
	json_auto_t *document = NULL;
	const json_t *entry;
	const json_t *mode;
	const char *type;
	int r = build_target(id, "/stat", path, 0, &target, err);

	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = target},
			&document, err);
	*ret = (struct transfer_stat){.size = -1};
	/* Only the file may be missing here; a missing sandbox or member is a failure. */
	if (r < 0 && err->kind == ERR_NOT_FOUND && strncmp(err->code, "sandbox", 7) != 0 &&
		strncmp(err->code, "member", 6) != 0)
		return 0;
	if (r < 0)
		return r;
	entry = json_object_get(document, "entry");
	entry = entry ? entry : document;
	type = json_string_value(json_object_get(entry, "type"));
	mode = json_object_get(entry, "mode");
	ret->exists = true;
	ret->is_dir = type && strcmp(type, "dir") == 0;
	if (json_is_integer(json_object_get(entry, "size")))
		ret->size = json_integer_value(json_object_get(entry, "size"));
	if (json_is_string(mode))
		ret->mode = (mode_t)strtoul(json_string_value(mode), NULL, 8) & PERMISSIONS;
	return 0;
}

static int put(struct client *client, const char *target, struct counted *counted, int64_t size,
	const char *type, json_t **ret_answer, struct err *err)
{
	struct client_source source = {counted_read, counted, size, type};
	int r;

	progress_init(&counted->progress, size);
	r = client_json(client,
		&(struct client_call){.method = "PUT", .path = target, .source = &source},
		ret_answer, err);
	progress_fini(&counted->progress);
	return r;
}

int transfer_send_fd(
	struct client *client, const char *target, int fd, json_t **ret_answer, struct err *err)
{
	struct counted counted = {.read = read_fd, .arg = &fd};
	struct stat st;
	int64_t size = -1;

	/* From where it stands: standard input may have been read from already. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		off_t at = lseek(fd, 0, SEEK_CUR);

		size = at >= 0 && at <= st.st_size ? st.st_size - at : -1;
	}
	return put(client, target, &counted, size, "application/octet-stream", ret_answer, err);
}

int transfer_put_fd(struct client *client, const char *id, const char *path, int fd, mode_t mode,
	struct err *err)
{
	auto_free char *target = NULL;
	int r = build_target(id, "", path, mode, &target, err);

	return r < 0 ? r : transfer_send_fd(client, target, fd, NULL, err);
}

static int send_tree(struct client *client, const char *target, const char *local,
	const char *const *skipped, json_t **ret_answer, struct err *err)
{
	struct counted counted = {.read = tree_sender_read};
	struct tree_sender *sender;
	int r = tree_sender_new(local, &sender, err);

	if (r < 0)
		return r;
	tree_sender_skip(sender, skipped);
	counted.arg = sender;
	r = put(client, target, &counted, -1, "application/x-tar", ret_answer, err);
	tree_sender_free(sender);
	return r;
}

int transfer_put_tree(
	struct client *client, const char *id, const char *path, const char *local, struct err *err)
{
	auto_free char *target = NULL;
	int r = build_target(id, "/archive", path, 0, &target, err);

	return r < 0 ? r : send_tree(client, target, local, NULL, NULL, err);
}

/* What installing makes is made again there. */
const char *const transfer_project_skipped[] = {
	"node_modules", ".venv", "venv", "__pycache__", ".git", ".next", ".nuxt", NULL};

int transfer_send_project(struct client *client, const char *target, const char *local,
	json_t **ret_answer, struct err *err)
{
	return send_tree(client, target, local, transfer_project_skipped, ret_answer, err);
}

static int open_target(struct client *client, const char *target, struct err *err)
{
	return client_open(client,
		&(struct client_call){.method = "GET", .path = target, .accept = "*/*"}, err);
}

int transfer_receive_fd(struct client *client, const char *target, int fd, struct err *err)
{
	struct counted counted = {.read = read_client, .arg = client};
	char chunk[CHUNK];
	ssize_t n;
	int r = open_target(client, target, err);

	if (r < 0)
		return r;
	progress_init(&counted.progress, client_size(client));
	while ((n = counted_read(&counted, chunk, sizeof(chunk), err)) > 0) {
		r = cli_write(fd, chunk, (size_t)n, err);
		if (r < 0)
			break;
	}
	progress_fini(&counted.progress);
	client_close(client);
	return r < 0 ? r : (int)n;
}

int transfer_get_fd(struct client *client, const char *id, const char *path,
	const struct transfer_stat *stat, int fd, struct err *err)
{
	auto_free char *target = NULL;
	int r = build_target(id, stat->is_dir ? "/archive" : "", path, 0, &target, err);

	return r < 0 ? r : transfer_receive_fd(client, target, fd, err);
}

int transfer_receive_file(struct client *client, const char *target, mode_t mode,
	const struct destination *to, struct err *err)
{
	auto_(new_file_fini) struct new_file file = NEW_FILE_INIT;
	int r;

	if (!to->name)
		return err_set(err, ERR_INVALID, "%s is a directory: name the file to make in it",
			to->text);
	r = interrupt_hold(client_interrupt(client), err);
	if (r == 0)
		r = new_file_open(to->dir_fd, &file, err);
	if (r < 0)
		return r;
	/* Watched, so that Ctrl-C takes the half file away too. */
	interrupt_watch(client_interrupt(client), true);
	r = transfer_receive_fd(client, target, file.fd, err);
	if (r == 0)
		r = new_file_commit(&file, to->name, mode ? mode : DEFAULT_MODE, NULL, err);
	return r;
}

int transfer_get_file(struct client *client, const char *id, const char *path,
	const struct transfer_stat *stat, const struct destination *to, struct err *err)
{
	auto_free char *target = NULL;
	int r = build_target(id, stat->is_dir ? "/archive" : "", path, 0, &target, err);

	return r < 0 ? r : transfer_receive_file(client, target, stat->mode, to, err);
}

/* The directory that the content goes into. */
static int open_dir(const struct destination *to, int *ret_fd, struct err *err)
{
	auto_fd int fd = -1;
	bool is_new = false;
	int r;

	if (to->name) {
		r = tree_writer_open_dir(to->dir_fd, to->name, &fd, &is_new, err);
		if (r < 0)
			return r;
	} else {
		fd = openat(to->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0 || (is_new && fchmod(fd, new_file_mode(PERMISSIONS)) < 0))
		return err_sys(err, "open the directory %s", to->text);
	*ret_fd = take_fd(&fd);
	return 0;
}

int transfer_receive_tree(
	struct client *client, const char *target, const struct destination *to, struct err *err)
{
	struct counted counted = {.read = read_client, .arg = client};
	struct tree_input input = {counted_read, &counted};
	auto_fd int dir_fd = -1;
	int r = interrupt_hold(client_interrupt(client), err);

	if (r < 0)
		return r;
	/* Watched, so that Ctrl-C takes the half file away too. */
	interrupt_watch(client_interrupt(client), true);
	r = open_target(client, target, err);
	if (r < 0)
		return r;
	/* Only now: what is not there leaves nothing here. */
	r = open_dir(to, &dir_fd, err);
	if (r == 0) {
		progress_init(&counted.progress, -1);
		r = tree_receive(dir_fd, &input, err);
		progress_fini(&counted.progress);
	}
	client_close(client);
	return r;
}

int transfer_get_tree(struct client *client, const char *id, const char *path,
	const struct destination *to, struct err *err)
{
	auto_free char *target = NULL;
	int r = build_target(id, "/archive", path, 0, &target, err);

	return r < 0 ? r : transfer_receive_tree(client, target, to, err);
}

int transfer_receive(struct client *client, const char *target, const char *name, bool is_tree,
	const char *to, struct err *err)
{
	auto_(destination_fini) struct destination destination = DESTINATION_INIT;
	auto_fd int special = -1;
	size_t len = strlen(to);
	int r;

	if (strcmp(to, "-") == 0)
		return transfer_receive_fd(client, target, STDOUT_FILENO, err);
	r = destination_open_special(to, &special, err);
	if (r > 0)
		return transfer_receive_fd(client, target, special, err);
	if (r == 0)
		r = destination_open(to, len > 0 && to[len - 1] == '/', name, &destination, err);
	if (r < 0)
		return r;
	return is_tree ? transfer_receive_tree(client, target, &destination, err)
		       : transfer_receive_file(client, target, 0, &destination, err);
}
