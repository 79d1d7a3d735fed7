/* SPDX-License-Identifier: Apache-2.0 */
#include "core/files/file_channel.h"

#include "base/fd.h"
#include "core/engine/agent_channel.h"
#include "core/engine/agent_link.h"
#include "core/engine/disk_reserve.h"
#include "core/files/relative_path.h"
#include "core/process/environment.h"
#include "wire/pack.h"

#include <errno.h>
#include <string.h>

#define CHANNEL_TIMEOUT_MS 60000
#define CHUNK		   (64u << 10) /* of what is written at once */

int file_channel_open_on(struct sandbox *sandbox, struct agent_link *link, uint32_t user,
	enum agent_file_op op, const struct buf *arguments, int *ret_fd, struct err *err)
{
	struct buf payload = BUF_INIT(AGENT_CHANNEL_FIRST_MAX);
	auto_fd int fd = -1;
	int r;

	pack_u8(&payload, op);
	pack_u32(&payload, user);
	buf_append(&payload, arguments->data, arguments->len);
	r = agent_channel_open(sandbox_engine(sandbox), sandbox_id(sandbox), link, AGENT_FILE,
		payload.data, payload.len, &fd, err);
	buf_fini(&payload);
	if (r < 0)
		return r;
	r = fd_set_timeout(fd, CHANNEL_TIMEOUT_MS);
	if (r < 0)
		return err_from(err, r, "limit the channel");
	*ret_fd = take_fd(&fd);
	return 0;
}

int file_channel_open(struct sandbox *sandbox, enum agent_file_op op, const struct buf *arguments,
	int *ret_fd, struct err *err)
{
	struct sandbox_record record;
	struct agent_link *link;
	uint32_t user;
	int r = 0;

	if (op == AGENT_FILE_WRITE || op == AGENT_FILE_UNPACK)
		r = disk_reserve_check(sandbox_engine(sandbox), err);
	if (r == 0)
		r = sandbox_use(sandbox, &link, err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	user = environment_uid(&record);
	sandbox_record_fini(&record);
	r = file_channel_open_on(sandbox, link, user, op, arguments, ret_fd, err);
	agent_link_unref(link);
	return r;
}

/* Room on the host was looked at before (prepare): it is the sandbox's own. */
#define DISK_IS_FULL "does not fit: the sandbox's own disk is full"
#define DISK_REMEDY                                                                                \
	"remove files in it, or give it more with PATCH /v1/sandboxes/{id} with `resources`"

/* The kinds of failure a client can do something about. */
static const struct {
	int errnum;
	enum err_kind kind;
	const char *code;
	const char *text;
	const char *remedy;
} failures[] = {
	{ENOENT, ERR_NOT_FOUND, "file_not_found", "does not exist"},
	{ENOTDIR, ERR_INVALID, "not_a_directory",
		"is not a directory, or leads through something that is not"},
	{EISDIR, ERR_INVALID, "is_a_directory", "is a directory"},
	{EINVAL, ERR_INVALID, "not_a_regular_file", "is not something that this can be done with"},
	{ENOTEMPTY, ERR_CONFLICT, "directory_not_empty", "is a directory that is not empty"},
	{EEXIST, ERR_CONFLICT, "file_exists", "exists already"},
	{ELOOP, ERR_INVALID, "symbolic_link",
		"leads through a symbolic link that is not followed here"},
	{EXDEV, ERR_INVALID, "crosses_mounts",
		"lies on another mount, where it cannot be renamed to",
		"copy it with exec: mv, or cp -a and rm"},
	{ENAMETOOLONG, ERR_INVALID, "path_too_long", "is too long"},
	{EBUSY, ERR_CONFLICT, "mount_point", "is a mount point"},
	{EROFS, ERR_DENIED, "read_only", "is on a read-only file system"},
	{EACCES, ERR_DENIED, "permission_denied", "may not be accessed"},
	{EPERM, ERR_DENIED, "permission_denied", "may not be changed"},
	{ETXTBSY, ERR_CONFLICT, "file_busy", "is being executed"},
	{ENOSPC, ERR_NO_SPACE, "out_of_disk", DISK_IS_FULL, DISK_REMEDY},
	{EDQUOT, ERR_NO_SPACE, "out_of_disk", DISK_IS_FULL, DISK_REMEDY},
	{EIO, ERR_NO_SPACE, "disk_failed",
		"was not stored: the disk of the sandbox failed, as it does when that of the host "
		"is "
		"full",
		"free space on the host, then stop and start the sandbox: its disk is checked "
		"then"},
	{EFBIG, ERR_TOO_LARGE, "file_too_large", "would be too large"},
	{EMFILE, ERR_RATE, "too_many_watches",
		"cannot be watched: the sandbox has too many watches already",
		"close some of them"},
	{EAGAIN, ERR_RATE, "process_refused",
		"cannot be worked on: the sandbox has no room for another process",
		"end processes in it, or raise its pids limit"},
};

int file_channel_describe(int errnum, const char *path, struct err *err)
{
	for (size_t i = 0; i < array_len(failures); i++) {
		int r;

		if (failures[i].errnum != errnum)
			continue;
		r = err_explain(err, failures[i].kind, failures[i].code, failures[i].remedy,
			"%s %s", path, failures[i].text);
		err->is_lasting = errnum == ENOSPC || errnum == EDQUOT;
		return r;
	}
	return err_set(err, ERR_CONFLICT, "%s: %s", path, strerror(errnum));
}

int file_channel_broken(int r, struct err *err)
{
	if (r == -EAGAIN)
		return err_set(err, ERR_TIMEOUT, "the sandbox did not answer in time");
	return err_explain(err, ERR_CONFLICT, "sandbox_ended", "try again",
		"the sandbox ended, or gave up, during the request");
}

int file_channel_read_answer(
	int fd, const char *path, struct file_channel_answer *ret_answer, struct err *err)
{
	uint8_t raw[AGENT_FILE_ANSWER_LEN];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	struct file_channel_answer answer = {0};
	int r = fd_read_full(fd, raw, sizeof(raw));

	if (r < 0)
		return file_channel_broken(r, err);
	answer.file.errnum = unpack_u32(&in);
	answer.file.kind = unpack_u8(&in);
	answer.file.flags = unpack_u8(&in);
	answer.file.target_len = unpack_u16(&in);
	answer.file.mode = unpack_u32(&in);
	answer.file.uid = unpack_u32(&in);
	answer.file.gid = unpack_u32(&in);
	answer.file.size = unpack_u64(&in);
	answer.file.mtime_ns = unpack_u64(&in);
	answer.file.ctime_ns = unpack_u64(&in);
	answer.file.inode = unpack_u64(&in);
	if (!unpack_done(&in) || answer.file.kind > AGENT_FILE_OTHER ||
		answer.file.target_len >= FILE_CHANNEL_TARGET_MAX || answer.file.size > INT64_MAX)
		return err_set(err, ERR_INTERNAL, "the sandbox gave a malformed answer");
	if (answer.file.target_len > 0) {
		r = fd_read_full(fd, answer.target, answer.file.target_len);
		if (r < 0)
			return file_channel_broken(r, err);
	}
	if (answer.file.errnum)
		return file_channel_describe(
			(int)answer.file.errnum, answer.target[0] ? answer.target : path, err);
	*ret_answer = answer;
	return 0;
}

int file_channel_ask(struct sandbox *sandbox, enum agent_file_op op, const char *path,
	const struct buf *more, struct file_channel_answer *ret_answer, int *ret_fd,
	struct err *err)
{
	struct buf arguments = BUF_INIT(AGENT_DOWN_MAX);
	auto_fd int fd = -1;
	int r;

	pack_str(&arguments, path);
	if (more)
		buf_append(&arguments, more->data, more->len);
	r = file_channel_open(sandbox, op, &arguments, &fd, err);
	buf_fini(&arguments);
	if (r == 0)
		r = file_channel_read_answer(fd, path, ret_answer, err);
	if (r == 0 && ret_fd)
		*ret_fd = take_fd(&fd);
	return r;
}

int file_channel_read_str(int fd, char text[AGENT_PATH_MAX])
{
	uint8_t raw[4];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	uint32_t len;
	int r = fd_read_full(fd, raw, sizeof(raw));

	if (r < 0)
		return r;
	len = unpack_u32(&in);
	if (len >= AGENT_PATH_MAX)
		return -EPROTO;
	text[len] = '\0';
	r = fd_read_full(fd, text, len);
	if (r < 0)
		return r;
	return strlen(text) == len ? 0 : -EPROTO;
}

int file_channel_read_path(int fd, char path[AGENT_PATH_MAX])
{
	int r = file_channel_read_str(fd, path);

	if (r < 0)
		return r;
	return path[0] && relative_path_is_plain(path) ? 0 : -EPROTO;
}

int file_channel_load(struct sandbox *sandbox, const char *path, size_t max, char **ret_text,
	size_t *ret_len, struct err *err)
{
	struct file_channel_answer answer;
	auto_fd int fd = -1;
	uint64_t range[2] = {0};
	char *text;
	int r = file_channel_ask(sandbox, AGENT_FILE_READ, path, NULL, &answer, &fd, err);

	if (r < 0)
		return r;
	if (answer.file.size > max)
		return err_set(err, ERR_TOO_LARGE, "%s is too large", path);
	range[1] = answer.file.size;
	text = mem_new(answer.file.size + 1);
	r = fd_write_full(fd, range, sizeof(range));
	if (r == 0)
		r = fd_read_full(fd, text, answer.file.size);
	if (r < 0) {
		free(text);
		return file_channel_broken(r, err);
	}
	*ret_text = text;
	*ret_len = answer.file.size;
	return 0;
}

static int send_content(int fd, const uint8_t *data, size_t len, struct err *err)
{
	uint32_t n;
	int r;

	do {
		n = len < CHUNK ? (uint32_t)len : CHUNK;
		r = fd_write_full(fd, &n, sizeof(n));
		if (r == 0 && n > 0)
			r = fd_write_full(fd, data, n);
		data += n;
		len -= n;
	} while (r == 0 && n > 0);
	return r < 0 ? file_channel_broken(r, err) : 0;
}

int file_channel_store(struct sandbox *sandbox, const char *path, uint32_t mode, const void *data,
	size_t len, struct file_channel_answer *ret_answer, struct err *err)
{
	struct buf more = BUF_INIT(16);
	auto_fd int fd = -1;
	int r;

	pack_u32(&more, mode);
	pack_u64(&more, len);
	r = file_channel_ask(sandbox, AGENT_FILE_WRITE, path, &more, ret_answer, &fd, err);
	buf_fini(&more);
	if (r == 0)
		r = send_content(fd, data, len, err);
	return r < 0 ? r : file_channel_read_answer(fd, path, ret_answer, err);
}
