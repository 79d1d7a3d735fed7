/* SPDX-License-Identifier: Apache-2.0 */
#include "core/audit/audit_ring.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FORMAT 1 /* to be raised with any change of struct audit_entry */

/* Whole when its sequence, written last, is not 0. A slot is used again after the entry in it was
 * dropped. */
struct slot {
	atomic_llong sequence;
	struct audit_entry entry;
};

struct ring_file {
	uint64_t format;
	uint64_t slot_size;
	struct slot slots[AUDIT_RING_SLOTS];
};

struct audit_ring {
	struct ring_file *file;
	int64_t first; /* sequence of the oldest */
	int64_t next;  /* sequence of the next to be added */
};

static struct slot *slot_of(const struct audit_ring *ring, int64_t sequence)
{
	return &ring->file->slots[sequence % AUDIT_RING_SLOTS];
}

/* All of it has its blocks now: a full disk must not be met when the mapping is written to. */
static int map(const char *path, struct ring_file **ret_file, struct err *err)
{
	auto_fd int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	void *file;
	int r;

	if (fd < 0)
		return err_sys(err, "open %s", path);
	r = -posix_fallocate(fd, 0, sizeof(struct ring_file));
	if (r < 0)
		return err_from(err, r, "make room for %s", path);
	file = mmap(NULL, sizeof(struct ring_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return err_sys(err, "map %s", path);
	*ret_file = file;
	return 0;
}

/* The texts end where they should, whatever is in the file. */
static void close_texts(struct audit_entry *entry)
{
	entry->owner.organization[sizeof(entry->owner.organization) - 1] = '\0';
	entry->owner.user[sizeof(entry->owner.user) - 1] = '\0';
	entry->token_id[sizeof(entry->token_id) - 1] = '\0';
	entry->action[sizeof(entry->action) - 1] = '\0';
	entry->object[sizeof(entry->object) - 1] = '\0';
	entry->code[sizeof(entry->code) - 1] = '\0';
	entry->peer[sizeof(entry->peer) - 1] = '\0';
	entry->request_id[sizeof(entry->request_id) - 1] = '\0';
	entry->detail[sizeof(entry->detail) - 1] = '\0';
}

static void take_up(struct audit_ring *ring)
{
	struct ring_file *file = ring->file;

	if (file->format != FORMAT || file->slot_size != sizeof(struct slot)) {
		memset(file, 0, sizeof(*file));
		file->format = FORMAT;
		file->slot_size = sizeof(struct slot);
	}
	while (ring->next - ring->first < AUDIT_RING_SLOTS &&
		atomic_load(&slot_of(ring, ring->next)->sequence) == ring->next) {
		struct audit_entry *entry = &slot_of(ring, ring->next)->entry;

		close_texts(entry);
		entry->sequence = ring->next++;
	}
	if (ring->next > ring->first)
		log_info("%lld entries of the audit log were left by the daemon before",
			(long long)(ring->next - ring->first));
}

int audit_ring_open(
	const char *path, int64_t written, struct audit_ring **ret_ring, struct err *err)
{
	struct ring_file *file;
	struct audit_ring *ring;
	int r = map(path, &file, err);

	if (r < 0)
		return r;
	ring = mem_new(sizeof(*ring));
	ring->file = file;
	ring->first = ring->next = written + 1;
	take_up(ring);
	*ret_ring = ring;
	return 0;
}

void audit_ring_close(struct audit_ring *ring)
{
	if (!ring)
		return;
	munmap(ring->file, sizeof(*ring->file));
	free(ring);
}

bool audit_ring_put(struct audit_ring *ring, const struct audit_entry *entry)
{
	struct slot *slot = slot_of(ring, ring->next);

	if (ring->next - ring->first == AUDIT_RING_SLOTS)
		return false;
	/* We may be killed between any two lines: half an entry must not look like one. */
	atomic_store(&slot->sequence, 0);
	slot->entry = *entry;
	slot->entry.sequence = ring->next;
	atomic_store(&slot->sequence, ring->next);
	ring->next++;
	return true;
}

size_t audit_ring_peek(
	const struct audit_ring *ring, const struct audit_entry *ret_entries[], size_t max)
{
	size_t count = 0;

	while (count < max && ring->first + (int64_t)count < ring->next) {
		ret_entries[count] = &slot_of(ring, ring->first + (int64_t)count)->entry;
		count++;
	}
	return count;
}

void audit_ring_drop(struct audit_ring *ring, size_t count)
{
	ring->first += (int64_t)count;
}

size_t audit_ring_count(const struct audit_ring *ring)
{
	return (size_t)(ring->next - ring->first);
}

int64_t audit_ring_last(const struct audit_ring *ring)
{
	return ring->next - 1;
}
