/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/channel.h"

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
#define IN_LEN	(256u * 1024)
#define OUT_MAX (OUT_LEN + 2 * AGENT_PATH_MAX + 1024)

void channel_init(struct channel *channel, int fd)
{
	*channel = (struct channel){.fd = fd, .out = BUF_INIT(OUT_MAX)};
}

void channel_fini(struct channel *channel)
{
	buf_fini(&channel->out);
	free(channel->in);
	channel->in = NULL;
}

int channel_flush(struct channel *channel)
{
	if (channel->out.len > 0 && channel->failure == 0)
		channel->failure = fd_write_full(channel->fd, channel->out.data, channel->out.len);
	channel->out.len = 0;
	return channel->failure;
}

/* Whoever puts more than the daemon wants learns it from the next function that can say so. */
static void make_room(struct channel *channel)
{
	if (channel->out.len >= OUT_LEN && channel_flush(channel) < 0)
		channel->out.len = 0;
}

void channel_put(struct channel *channel, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len > 0) {
		size_t n = len < OUT_LEN ? len : OUT_LEN;

		make_room(channel);
		buf_append(&channel->out, at, n);
		at += n;
		len -= n;
	}
}

void channel_put_u8(struct channel *channel, uint8_t value)
{
	make_room(channel);
	pack_u8(&channel->out, value);
}

void channel_put_u32(struct channel *channel, uint32_t value)
{
	make_room(channel);
	pack_u32(&channel->out, value);
}

void channel_put_u64(struct channel *channel, uint64_t value)
{
	make_room(channel);
	pack_u64(&channel->out, value);
}

void channel_put_str(struct channel *channel, const char *s)
{
	channel_put_u32(channel, (uint32_t)strlen(s));
	channel_put(channel, s, strlen(s));
}

static void put_answer(
	struct channel *channel, const struct agent_file_answer *answer, const char *target)
{
	struct buf *out = &channel->out;

	make_room(channel);
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
	channel_put(channel, target, strlen(target));
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

void channel_put_answer(
	struct channel *channel, const struct stat *stat, unsigned flags, const char *target)
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

	put_answer(channel, &answer, target);
}

void channel_put_nothing(struct channel *channel)
{
	put_answer(channel, &(struct agent_file_answer){.kind = AGENT_FILE_NONE}, "");
}

void channel_put_failure(struct channel *channel, int errnum, const char *target)
{
	put_answer(channel, &(struct agent_file_answer){.errnum = (uint32_t)errnum}, target);
}

/* For file systems that cannot sendfile. */
static ssize_t copy_once(struct channel *channel, int file, off_t *offset, size_t len)
{
	ssize_t n;
	int r;

	if (!channel->in)
		channel->in = mem_new(IN_LEN);
	assert(channel->in_at == channel->in_len);
	n = pread(file, channel->in, len < IN_LEN ? len : IN_LEN, *offset);
	if (n <= 0)
		return n;
	r = fd_write_full(channel->fd, channel->in, (size_t)n);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	*offset += n;
	return n;
}

int channel_send_file(
	struct channel *channel, int file, uint64_t offset, uint64_t len, uint64_t *ret_sent)
{
	off_t at = (off_t)offset;
	bool can_sendfile = true;
	int r = channel_flush(channel);

	*ret_sent = 0;
	while (r == 0 && *ret_sent < len) {
		uint64_t left = len - *ret_sent;
		size_t piece = left < (1u << 30) ? (size_t)left : 1u << 30;
		ssize_t n = can_sendfile ? sendfile(channel->fd, file, &at, piece)
					 : copy_once(channel, file, &at, piece);

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
static ssize_t refill(struct channel *channel)
{
	ssize_t n;
	int r = channel_flush(channel);

	if (r < 0)
		return r;
	if (!channel->in)
		channel->in = mem_new(IN_LEN);
	do {
		n = recv(channel->fd, channel->in, IN_LEN, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	channel->in_at = 0;
	channel->in_len = (size_t)n;
	return n;
}

/* What is in the buffer, at most len of it; 0 or -errno. */
static int take(struct channel *channel, uint64_t len, const uint8_t **ret_data, size_t *ret_len)
{
	size_t there;

	if (channel->in_at == channel->in_len) {
		ssize_t n = refill(channel);

		if (n < 0)
			return (int)n;
	}
	there = channel->in_len - channel->in_at;
	*ret_len = len < there ? (size_t)len : there;
	*ret_data = channel->in + channel->in_at;
	channel->in_at += *ret_len;
	return 0;
}

int channel_read(struct channel *channel, void *data, size_t len)
{
	uint8_t *at = data;

	while (len > 0) {
		const uint8_t *part;
		size_t n;
		int r = take(channel, len, &part, &n);

		if (r < 0)
			return r;
		memcpy(at, part, n);
		at += n;
		len -= n;
	}
	return 0;
}

int channel_read_u8(struct channel *channel, uint8_t *ret_value)
{
	return channel_read(channel, ret_value, 1);
}

int channel_read_u32(struct channel *channel, uint32_t *ret_value)
{
	uint8_t raw[4];
	int r = channel_read(channel, raw, sizeof(raw));

	if (r == 0)
		*ret_value = unpack_u32(&UNPACK_INIT(raw, sizeof(raw)));
	return r;
}

int channel_read_u64(struct channel *channel, uint64_t *ret_value)
{
	uint8_t raw[8];
	int r = channel_read(channel, raw, sizeof(raw));

	if (r == 0)
		*ret_value = unpack_u64(&UNPACK_INIT(raw, sizeof(raw)));
	return r;
}

int channel_read_str(struct channel *channel, char *text, size_t size)
{
	uint32_t len;
	int r = channel_read_u32(channel, &len);

	if (r < 0)
		return r;
	if (len >= size)
		return -EPROTO;
	r = channel_read(channel, text, len);
	if (r < 0)
		return r;
	text[len] = '\0';
	return strlen(text) == len ? 0 : -EPROTO;
}

int channel_receive_file(struct channel *channel, int file, uint64_t len, int *ret_failure)
{
	while (len > 0) {
		const uint8_t *part;
		size_t n;
		int r = take(channel, len, &part, &n);

		if (r < 0)
			return r;
		if (file >= 0 && *ret_failure == 0)
			*ret_failure = fd_write_full(file, part, n);
		len -= n;
	}
	return 0;
}

void channel_drain(struct channel *channel)
{
	ssize_t n;

	do {
		n = refill(channel);
	} while (n > 0);
}

bool channel_is_wanted(const struct channel *channel)
{
	struct pollfd pollfd = {.fd = channel->fd};

	return channel->failure == 0 && poll(&pollfd, 1, 0) == 0;
}
