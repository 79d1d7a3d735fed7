/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/layer_install.h"

#include "base/buf.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/share_pool.h"
#include "wire/layer.h"
#include "wire/pack.h"

#include <errno.h>
#include <string.h>

#define BATCH_SIZE    (512u << 10)
#define LOOK_BYTES    (1u << 20) /* how often to ask for room */
#define ENTRY_BYTES   4096u	 /* what a file, link or directory takes by itself */
#define ANSWER_SIZE   (LAYER_NAME_MAX + 16)
#define ANSWER_MS     600000 /* the writer syncs the disk at its end */
#define CLAIM_WAIT_MS 200

struct installer {
	int stream;
	struct buf batch;
	bool is_open; /* the pieces of a file are not ended yet */
	uint64_t since_look;
	uint64_t bytes; /* that there was room for */
	bool has_python, has_python_bytecode;
	const struct layer_order *order;
};

static int flush(struct installer *installer, struct err *err)
{
	int r = fd_write_full(installer->stream, installer->batch.data, installer->batch.len);

	installer->batch.len = 0;
	/* The writer gave up; its answer says why. */
	return r < 0 ? err_set(err, ERR_CONFLICT, "the layer cannot be written") : 0;
}

static int add_bytes(struct installer *installer, const void *data, size_t len, struct err *err)
{
	const uint8_t *at = data;

	while (len > 0) {
		size_t room = BATCH_SIZE - installer->batch.len, n = len < room ? len : room;

		buf_append(&installer->batch, at, n);
		at += n;
		len -= n;
		if (installer->batch.len == BATCH_SIZE) {
			int r = flush(installer, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int add_buf(struct installer *installer, struct buf *buf, struct err *err)
{
	int r = buf->failed ? err_set(err, ERR_INVALID, "the layer has a name that is too long")
			    : add_bytes(installer, buf->data, buf->len, err);

	buf_fini(buf);
	return r;
}

static int end_file(struct installer *installer, struct err *err)
{
	struct buf piece = BUF_INIT(16);

	if (!installer->is_open)
		return 0;
	installer->is_open = false;
	pack_u64(&piece, 0);
	pack_u32(&piece, 0);
	return add_buf(installer, &piece, err);
}

static void pack_item(struct buf *item, enum layer_item kind, const struct layer_entry *entry)
{
	pack_u8(item, (uint8_t)kind);
	pack_u32(item, entry->mode);
	pack_u32(item, entry->uid);
	pack_u32(item, entry->gid);
	pack_u64(item, entry->mtime_ns > 0 ? (uint64_t)entry->mtime_ns : 0);
	pack_u64(item, entry->size);
	pack_str(item, entry->path);
	pack_str(item, entry->target);
	pack_u32(item, (uint32_t)entry->xattr_count);
	for (size_t i = 0; i < entry->xattr_count; i++) {
		pack_str(item, entry->xattrs[i].name);
		pack_u32(item, (uint32_t)entry->xattrs[i].len);
		buf_append(item, entry->xattrs[i].value, entry->xattrs[i].len);
	}
}

static int ask_for_room(struct installer *installer, struct err *err)
{
	uint64_t bytes = installer->since_look;

	installer->since_look = 0;
	installer->bytes += bytes;
	return installer->order->may_grow
		       ? installer->order->may_grow(installer->order->arg, (int64_t)bytes, err)
		       : 0;
}

static int look_for_room(struct installer *installer, size_t len, struct err *err)
{
	installer->since_look += len;
	return installer->since_look < LOOK_BYTES ? 0 : ask_for_room(installer, err);
}

/* Any module that every program imports tells of the library, and of its byte code. */
static void look_for_python(struct installer *installer, const char *path)
{
	const char *library = strstr(path, "lib/python3."), *rest;

	rest = library ? strchr(library + strlen("lib/python3."), '/') : NULL;
	if (!rest)
		return;
	installer->has_python |= strcmp(rest, "/os.py") == 0;
	installer->has_python_bytecode |= strncmp(rest, "/__pycache__/os.", 16) == 0;
}

static int send_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	static const enum layer_item kinds[] = {
		[LAYER_FILE] = LAYER_ITEM_FILE,
		[LAYER_DIRECTORY] = LAYER_ITEM_DIRECTORY,
		[LAYER_SYMLINK] = LAYER_ITEM_SYMLINK,
		[LAYER_HARDLINK] = LAYER_ITEM_HARDLINK,
		[LAYER_FIFO] = LAYER_ITEM_FIFO,
		[LAYER_WHITEOUT] = LAYER_ITEM_WHITEOUT,
		[LAYER_OPAQUE] = LAYER_ITEM_OPAQUE,
	};
	struct installer *installer = arg;
	struct buf item = BUF_INIT(3 * LAYER_NAME_MAX + LAYER_XATTRS_MAX * (LAYER_VALUE_MAX + 512));
	int r = look_for_room(installer, ENTRY_BYTES, err);

	if (r == 0)
		r = end_file(installer, err);
	if (r < 0)
		return r;
	pack_item(&item, kinds[entry->kind], entry);
	installer->is_open = entry->kind == LAYER_FILE;
	look_for_python(installer, entry->path);
	return add_buf(installer, &item, err);
}

static int send_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct installer *installer = arg;
	const uint8_t *at = data;
	int r = look_for_room(installer, len, err);

	while (r == 0 && len > 0) {
		uint32_t n = len < LAYER_PIECE_MAX ? (uint32_t)len : LAYER_PIECE_MAX;
		struct buf head = BUF_INIT(16);

		pack_u64(&head, offset);
		pack_u32(&head, n);
		r = add_buf(installer, &head, err);
		if (r == 0)
			r = add_bytes(installer, at, n, err);
		at += n;
		offset += n;
		len -= n;
	}
	return r;
}

static int send_end(struct installer *installer, struct err *err)
{
	static const struct layer_entry nothing = {.path = "", .target = ""};
	struct buf item = BUF_INIT(256);
	int r = end_file(installer, err);

	if (r == 0)
		r = ask_for_room(installer, err);
	if (r < 0)
		return r;
	pack_item(&item, LAYER_ITEM_END, &nothing);
	r = add_buf(installer, &item, err);
	return r < 0 ? r : flush(installer, err);
}

/* What the writer says at its end: 0, or what went wrong and where. */
static int read_answer(int stream, struct err *err)
{
	uint8_t head[4 + 4];
	char name[LAYER_NAME_MAX] = "";
	uint32_t errnum, len;
	int r = fd_set_timeout(stream, ANSWER_MS);

	if (r == 0)
		r = fd_read_full(stream, head, sizeof(head));
	if (r < 0)
		return err_set(err, ERR_INTERNAL, "the writer of a layer ended early");
	memcpy(&errnum, head, sizeof(errnum));
	memcpy(&len, head + sizeof(errnum), sizeof(len));
	if (len >= sizeof(name) || fd_read_full(stream, name, len) < 0)
		return err_set(err, ERR_INTERNAL, "the writer of a layer says nonsense");
	name[len] = '\0';
	if (errnum == 0)
		return 0;
	if (errnum == ENOSPC || errnum == EDQUOT)
		return err_set(err, ERR_NO_SPACE, "the disk is full: a layer cannot be written");
	return err_explain(err, ERR_INVALID, "invalid_layer",
		"the image is damaged, or made to do harm",
		"the layer's entry %.160s cannot be written: %s", name, strerror((int)errnum));
}

static int read_and_send(
	struct installer *installer, int blob_fd, struct layer_result *ret_result, struct err *err)
{
	const struct layer_sink sink = {
		.entry = send_entry, .content = send_content, .arg = installer};
	struct err written;
	int r = layer_reader_run(blob_fd, installer->order->diff_id, LAYER_INSTALL_BYTES_MAX, &sink,
		ret_result, err);

	if (r == 0)
		r = send_end(installer, err);
	/* Where the writer gave up first, it knows why. */
	if (r == -EEXIST && read_answer(installer->stream, &written) < 0) {
		*err = written;
		return r;
	}
	return r < 0 ? r : read_answer(installer->stream, err);
}

struct layer_installing {
	struct digest diff_id;
	struct share *writer; /* NULL: it is held, and not installed */
	struct layer_installing *next;
};

void layer_installs_init(struct layer_installs *installs)
{
	struct share_limits limits = share_limits_of(LAYER_INSTALL_WRITERS);

	*installs = (struct layer_installs){.writers = share_pool_new(&limits)};
	pthread_mutex_init(&installs->lock, NULL);
	pthread_cond_init(&installs->changed, NULL);
	pthread_mutex_init(&installs->stacking, NULL);
}

void layer_installs_fini(struct layer_installs *installs)
{
	pthread_mutex_destroy(&installs->stacking);
	pthread_cond_destroy(&installs->changed);
	pthread_mutex_destroy(&installs->lock);
	share_pool_free(installs->writers);
}

static bool is_busy(const struct layer_installs *installs, const struct digest *diff_id)
{
	for (const struct layer_installing *one = installs->first; one; one = one->next) {
		if (digest_equals(&one->diff_id, diff_id))
			return true;
	}
	return false;
}

/* The layer, and a writer for it, are this thread's from now on. */
static void begin(
	struct layer_installs *installs, const struct owner *owner, struct layer_installing *own)
{
	pthread_mutex_lock(&installs->lock);
	while (is_busy(installs, &own->diff_id) ||
		share_pool_take(installs->writers, owner_key(owner), owner_is_operator(owner),
			&own->writer) < 0)
		pthread_cond_wait(&installs->changed, &installs->lock);
	own->next = installs->first;
	installs->first = own;
	pthread_mutex_unlock(&installs->lock);
}

static void end(struct layer_installs *installs, struct layer_installing *own)
{
	struct layer_installing **at = &installs->first;

	pthread_mutex_lock(&installs->lock);
	while (*at != own)
		at = &(*at)->next;
	*at = own->next;
	if (own->writer)
		share_give_back(own->writer);
	pthread_cond_broadcast(&installs->changed);
	pthread_mutex_unlock(&installs->lock);
}

struct layer_installing *layer_installs_hold(
	struct layer_installs *installs, const struct digest *diff_id)
{
	struct layer_installing *held = NULL;

	pthread_mutex_lock(&installs->lock);
	if (!is_busy(installs, diff_id)) {
		held = mem_new(sizeof(*held));
		held->diff_id = *diff_id;
		held->next = installs->first;
		installs->first = held;
	}
	pthread_mutex_unlock(&installs->lock);
	return held;
}

void layer_installs_release(struct layer_installs *installs, struct layer_installing *held)
{
	end(installs, held);
	free(held);
}

static const struct layer_bringing *find_claim(
	const struct layer_installs *installs, uint64_t owner, const struct digest *diff_id)
{
	const struct layer_bringing *one = installs->bringing;

	while (one && (one->owner != owner || !digest_equals(&one->diff_id, diff_id)))
		one = one->next;
	return one;
}

bool layer_installs_claim(struct layer_installs *installs, const struct owner *owner,
	const struct digest *diff_id, struct layer_bringing *ret_claim)
{
	uint64_t key = owner_key(owner);
	struct timespec until;
	bool is_ours;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += CLAIM_WAIT_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&installs->lock);
	while (r == 0 && find_claim(installs, key, diff_id))
		r = pthread_cond_timedwait(&installs->changed, &installs->lock, &until);
	is_ours = !find_claim(installs, key, diff_id);
	if (is_ours) {
		*ret_claim = (struct layer_bringing){
			.owner = key, .diff_id = *diff_id, .next = installs->bringing};
		installs->bringing = ret_claim;
	}
	pthread_mutex_unlock(&installs->lock);
	return is_ours;
}

void layer_installs_give_up(struct layer_installs *installs, struct layer_bringing *claim)
{
	struct layer_bringing **at = &installs->bringing;

	pthread_mutex_lock(&installs->lock);
	while (*at != claim)
		at = &(*at)->next;
	*at = claim->next;
	pthread_cond_broadcast(&installs->changed);
	pthread_mutex_unlock(&installs->lock);
}

static int install(struct installer *installer, struct driver *driver,
	const struct blob_store *blobs, struct layer_result *ret_result, struct err *err)
{
	const char *name = digest_hex(installer->order->diff_id);
	auto_fd int blob_fd = -1, stream = -1;
	struct err ignored;
	int r = installer->order->begin
			? installer->order->begin(installer->order->arg, name, false, err)
			: 0;

	if (r == 0)
		r = driver->ops->write_layer(driver, name, &stream, err);

	if (r == -EEXIST)
		return 1;
	if (r < 0)
		return r;
	installer->stream = stream;
	fail_point("layer.begun");
	r = blob_store_read(blobs, installer->order->blob, &blob_fd, err);
	if (r == 0)
		r = read_and_send(installer, blob_fd, ret_result, err);
	if (r == 0)
		fail_point("layer.unpacked");
	if (r == 0)
		r = driver->ops->commit_layer(driver, name, err);
	if (r < 0) {
		/* The writer ends with its stream, and must be gone before its directory is. */
		fd_close(take_fd(&stream));
		(void)!driver->ops->drop_layer(driver, name, &ignored);
	}
	return r;
}

int layer_install(struct layer_installs *installs, struct driver *driver,
	const struct blob_store *blobs, const struct layer_order *order,
	struct layer_installed *ret_installed, struct err *err)
{
	struct layer_installing own = {.diff_id = *order->diff_id};
	struct installer installer = {.batch = BUF_INIT(BATCH_SIZE), .order = order};
	struct err ignored;
	int r;

	*ret_installed = (struct layer_installed){0};
	begin(installs, order->owner, &own);
	r = install(&installer, driver, blobs, &ret_installed->result, err);
	if (r == 0) {
		ret_installed->bytes = installer.bytes;
		ret_installed->has_python = installer.has_python;
		ret_installed->has_python_bytecode = installer.has_python_bytecode;
	} else if (order->may_grow && installer.bytes > 0)
		(void)!order->may_grow(order->arg, -(int64_t)installer.bytes, &ignored);
	end(installs, &own);
	buf_fini(&installer.batch);
	return r;
}
