/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dialog.h"

#include "base/fd.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_LEN (64u * 1024)

/*
 * Measured, a gigabyte from a socket into a file: 32 KiB 1.7, 64 KiB 2.0, 256 KiB 2.6, 1 MiB 2.6
 * GB/s; splice through a pipe 2.3, through one of 1 MiB 3.2. The last is not worth a second way of
 * reading, and would need chunks far larger than the daemon sends.
 */
#define IN_LEN	(256u * 1024)
#define OUT_MAX (OUT_LEN + 2 * AGENT_PATH_MAX + 1024)

void dialog_init(struct dialog *dialog, int fd)
{
	*dialog = (struct dialog){.fd = fd, .out = BUF_INIT(OUT_MAX)};
}

void dialog_fini(struct dialog *dialog)
{
	buf_fini(&dialog->out);
	free(dialog->in);
	dialog->in = NULL;
}

int dialog_flush(struct dialog *dialog)
{
	if (dialog->out.len > 0 && dialog->failure == 0)
		dialog->failure = fd_write_full(dialog->fd, dialog->out.data, dialog->out.len);
	dialog->out.len = 0;
	return dialog->failure;
}

/* Whoever puts more than the daemon wants learns it from the next function that can say so. */
static void make_room(struct dialog *dialog)
{
	if (dialog->out.len >= OUT_LEN && dialog_flush(dialog) < 0)
		dialog->out.len = 0;
}

void dialog_put(struct dialog *dialog, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len > 0) {
		size_t n = len < OUT_LEN ? len : OUT_LEN;

		make_room(dialog);
		buf_append(&dialog->out, at, n);
		at += n;
		len -= n;
	}
}

void dialog_put_u8(struct dialog *dialog, uint8_t value)
{
	make_room(dialog);
	pack_u8(&dialog->out, value);
}

void dialog_put_u32(struct dialog *dialog, uint32_t value)
{
	make_room(dialog);
	pack_u32(&dialog->out, value);
}

void dialog_put_u64(struct dialog *dialog, uint64_t value)
{
	make_room(dialog);
	pack_u64(&dialog->out, value);
}

void dialog_put_str(struct dialog *dialog, const char *s)
{
	dialog_put_u32(dialog, (uint32_t)strlen(s));
	dialog_put(dialog, s, strlen(s));
}

static void put_answer(
	struct dialog *dialog, const struct agent_file_answer *answer, const char *target)
{
	struct buf *out = &dialog->out;

	make_room(dialog);
	pack_u32(out, answer->errnum);
	pack_u8(out, answer->kind);
	pack_u8(out, answer->flags);
	pack_u16(out, (uint16_t)strlen(target));
	pack_u32(out, answer->mode);
	pack_u32(out, answer->uid);
	pack_u32(out, answer->gid);
	pack_u64(out, answer->size);
	pack_u64(out, answer->mtime_ns);
	pack_u64(out, answer->inode);
	dialog_put(dialog, target, strlen(target));
}

static uint8_t kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return AGENT_FILE_REGULAR;
	case S_IFDIR:
		return AGENT_FILE_DIRECTORY;
	case S_IFLNK:
		return AGENT_FILE_SYMLINK;
	default:
		return AGENT_FILE_OTHER;
	}
}

void dialog_put_answer(
	struct dialog *dialog, const struct stat *stat, unsigned flags, const char *target)
{
	struct agent_file_answer answer = {
		.kind = kind_of(stat->st_mode),
		.flags = (uint8_t)flags,
		.mode = stat->st_mode & 07777,
		.uid = stat->st_uid,
		.gid = stat->st_gid,
		.size = (uint64_t)stat->st_size,
		.mtime_ns = (uint64_t)stat->st_mtim.tv_sec * 1000000000 +
			    (uint64_t)stat->st_mtim.tv_nsec,
		.inode = stat->st_ino,
	};

	put_answer(dialog, &answer, target);
}

void dialog_put_nothing(struct dialog *dialog)
{
	put_answer(dialog, &(struct agent_file_answer){.kind = AGENT_FILE_NONE}, "");
}

void dialog_put_failure(struct dialog *dialog, int errnum, const char *target)
{
	put_answer(dialog, &(struct agent_file_answer){.errnum = (uint32_t)errnum}, target);
}

/* For file systems that cannot sendfile. */
static ssize_t copy_once(struct dialog *dialog, int file, off_t *offset, size_t len)
{
	ssize_t n;
	int r;

	if (!dialog->in)
		dialog->in = mem_new(IN_LEN);
	assert(dialog->in_at == dialog->in_len);
	n = pread(file, dialog->in, len < IN_LEN ? len : IN_LEN, *offset);
	if (n <= 0)
		return n;
	r = fd_write_full(dialog->fd, dialog->in, (size_t)n);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	*offset += n;
	return n;
}

int dialog_send_file(
	struct dialog *dialog, int file, uint64_t offset, uint64_t len, uint64_t *ret_sent)
{
	off_t at = (off_t)offset;
	bool can_sendfile = true;
	int r = dialog_flush(dialog);

	*ret_sent = 0;
	while (r == 0 && *ret_sent < len) {
		uint64_t left = len - *ret_sent;
		size_t piece = left < (1u << 30) ? (size_t)left : 1u << 30;
		ssize_t n = can_sendfile ? sendfile(dialog->fd, file, &at, piece)
					 : copy_once(dialog, file, &at, piece);

		if (n < 0 && can_sendfile && (errno == EINVAL || errno == ENOSYS))
			can_sendfile = false;
		else if (n < 0 && errno != EINTR)
			r = -errno;
		else if (n == 0)
			r = -ENODATA;
		else if (n > 0)
			*ret_sent += (uint64_t)n;
	}
	return r;
}

/* More bytes into an empty buffer: how many, or -errno. */
static ssize_t refill(struct dialog *dialog)
{
	ssize_t n;
	int r = dialog_flush(dialog);

	if (r < 0)
		return r;
	if (!dialog->in)
		dialog->in = mem_new(IN_LEN);
	do {
		n = recv(dialog->fd, dialog->in, IN_LEN, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	dialog->in_at = 0;
	dialog->in_len = (size_t)n;
	return n;
}

/* What is in the buffer, at most len of it; 0 or -errno. */
static int take(struct dialog *dialog, uint64_t len, const uint8_t **ret_data, size_t *ret_len)
{
	size_t there;

	if (dialog->in_at == dialog->in_len) {
		ssize_t n = refill(dialog);

		if (n < 0)
			return (int)n;
	}
	there = dialog->in_len - dialog->in_at;
	*ret_len = len < there ? (size_t)len : there;
	*ret_data = dialog->in + dialog->in_at;
	dialog->in_at += *ret_len;
	return 0;
}

int dialog_read(struct dialog *dialog, void *data, size_t len)
{
	uint8_t *at = data;

	while (len > 0) {
		const uint8_t *part;
		size_t n;
		int r = take(dialog, len, &part, &n);

		if (r < 0)
			return r;
		memcpy(at, part, n);
		at += n;
		len -= n;
	}
	return 0;
}

int dialog_read_u8(struct dialog *dialog, uint8_t *ret_value)
{
	return dialog_read(dialog, ret_value, 1);
}

int dialog_read_u32(struct dialog *dialog, uint32_t *ret_value)
{
	uint8_t raw[4];
	int r = dialog_read(dialog, raw, sizeof(raw));

	if (r < 0)
		return r;
	*ret_value = unpack_u32(&UNPACK_INIT(raw, sizeof(raw)));
	return 0;
}

int dialog_read_u64(struct dialog *dialog, uint64_t *ret_value)
{
	uint8_t raw[8];
	int r = dialog_read(dialog, raw, sizeof(raw));

	if (r < 0)
		return r;
	*ret_value = unpack_u64(&UNPACK_INIT(raw, sizeof(raw)));
	return 0;
}

int dialog_read_str(struct dialog *dialog, char *text, size_t size)
{
	uint32_t len;
	int r = dialog_read_u32(dialog, &len);

	if (r < 0)
		return r;
	if (len >= size)
		return -EPROTO;
	r = dialog_read(dialog, text, len);
	if (r < 0)
		return r;
	text[len] = '\0';
	return strlen(text) == len ? 0 : -EPROTO;
}

int dialog_receive_file(struct dialog *dialog, int file, uint64_t len, int *ret_failure)
{
	while (len > 0) {
		const uint8_t *part;
		size_t n;
		int r = take(dialog, len, &part, &n);

		if (r < 0)
			return r;
		if (file >= 0 && *ret_failure == 0)
			*ret_failure = fd_write_full(file, part, n);
		len -= n;
	}
	return 0;
}

void dialog_drain(struct dialog *dialog)
{
	ssize_t n;

	do {
		n = refill(dialog);
	} while (n > 0);
}

bool dialog_is_wanted(const struct dialog *dialog)
{
	struct pollfd pollfd = {.fd = dialog->fd};

	return dialog->failure == 0 && poll(&pollfd, 1, 0) == 0;
}
