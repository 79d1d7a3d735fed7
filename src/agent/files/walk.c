/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/walk.h"

#include "agent/files/path.h"
#include "agent/machine/dirents.h"
#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#define LEVELS_STEP 16

/* The names of one directory that are greater than a cursor: a heap with the greatest on top. */
struct heap {
	char **names;
	size_t count;
	size_t size;
	size_t max;
};

static void heap_sift_up(struct heap *heap, size_t at)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;
		char *name = heap->names[at];

		if (strcmp(heap->names[parent], name) >= 0)
			return;
		heap->names[at] = heap->names[parent];
		heap->names[parent] = name;
		at = parent;
	}
}

static void heap_sift_down(struct heap *heap, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		char *name = heap->names[at];

		if (child + 1 < heap->count &&
			strcmp(heap->names[child + 1], heap->names[child]) > 0)
			child++;
		if (child >= heap->count || strcmp(name, heap->names[child]) >= 0)
			return;
		heap->names[at] = heap->names[child];
		heap->names[child] = name;
		at = child;
	}
}

/* Keeps name if it is among the max smallest; false when any name was left out. */
static bool heap_offer(struct heap *heap, const char *name)
{
	if (heap->count < heap->max) {
		if (heap->count == heap->size) {
			heap->size = heap->size ? heap->size * 2 : 16;
			heap->names = realloc(heap->names, heap->size * sizeof(char *));
			if (!heap->names)
				abort();
		}
		heap->names[heap->count++] = mem_strdup(name);
		heap_sift_up(heap, heap->count - 1);
		return true;
	}
	if (strcmp(name, heap->names[0]) < 0) {
		free(heap->names[0]);
		heap->names[0] = mem_strdup(name);
		heap_sift_down(heap, 0);
	}
	return false;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void level_clear(struct walk *walk, struct walk_level *level)
{
	size_t kept = level->next > 0 ? level->next - 1 : 0;

	for (size_t i = kept; i < level->count; i++)
		free(level->names[i]);
	walk->names_held -= level->count - level->next;
	free(level->names);
	level->names = NULL;
	level->count = level->next = 0;
}

/* When there are too many names, the outer levels forget their last ones: they are needed last. */
static void forget_surplus(struct walk *walk)
{
	for (size_t i = 0; i < walk->depth && walk->names_held > walk->names_max; i++) {
		struct walk_level *level = &walk->levels[i];

		while (level->count > level->next && walk->names_held > walk->names_max) {
			free(level->names[--level->count]);
			walk->names_held--;
			level->is_partial = true;
		}
	}
}

/* Fills a level with the smallest names from `from` on, or, unless inclusive, after it. */
static int scan(struct walk *walk, struct walk_level *level, const char *from, bool is_inclusive)
{
	struct heap heap = {.max = walk->names_max};
	bool is_partial = false;
	struct dirents dirents;
	const char *name;
	int r;

	assert(heap.max > 0);
	dirents_begin(&dirents, walk->dir, walk->entries);
	while ((r = dirents_next(&dirents, &name)) > 0) {
		int order = strcmp(name, from);

		if ((order > 0 || (order == 0 && is_inclusive)) && !heap_offer(&heap, name))
			is_partial = true;
	}
	if (heap.count > 0)
		qsort(heap.names, heap.count, sizeof(char *), compare);
	level_clear(walk, level);
	level->names = heap.names;
	level->count = heap.count;
	level->is_partial = is_partial;
	walk->names_held += heap.count;
	forget_surplus(walk);
	/* A directory that was removed after it was opened. */
	return r == -ENOENT ? 0 : r;
}

static int rescan(struct walk *walk, struct walk_level *level)
{
	auto_free char *last = NULL;

	assert(level->next > 0);
	last = mem_strdup(level->names[level->next - 1]);
	if (lseek(walk->dir, 0, SEEK_SET) < 0)
		return -errno;
	return scan(walk, level, last, false);
}

/* One level in: walk->dir is its directory, the first path_len bytes of walk->path its path. */
static int push(struct walk *walk, size_t path_len)
{
	char first[NAME_MAX + 1] = "";
	size_t len;

	if (walk->depth % LEVELS_STEP == 0) {
		walk->levels = realloc(
			walk->levels, (walk->depth + LEVELS_STEP) * sizeof(walk->levels[0]));
		if (!walk->levels)
			abort();
	}
	walk->levels[walk->depth++] = (struct walk_level){.path_len = path_len};
	if (walk->after) {
		len = strcspn(walk->after, "/");
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(first, walk->after, len);
	}
	return scan(walk, &walk->levels[walk->depth - 1], first, true);
}

/* One level out. Its directory is opened again by its path; while it cannot be, further out. */
static void pop(struct walk *walk)
{
	do {
		walk->depth--;
		level_clear(walk, &walk->levels[walk->depth]);
		fd_close(walk->dir);
		walk->dir = -1;
		if (walk->depth == 0)
			return;
		walk->path[walk->levels[walk->depth - 1].path_len] = '\0';
		walk->dir = path_open(walk->root, walk->path[0] ? walk->path : ".",
			O_RDONLY | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	} while (walk->dir < 0);
}

/* Into the directory that walk->path names now; staying where it is when that is gone. */
static int descend(struct walk *walk, const char *name)
{
	int dir = path_open(walk->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (dir < 0) {
		walk->after = NULL;
		return 0;
	}
	fd_close(walk->dir);
	walk->dir = dir;
	return push(walk, strlen(walk->path));
}

/* The next name of the innermost level, whose path goes to walk->path; NULL if it has no more. */
static const char *next_name(struct walk *walk, struct walk_level *level)
{
	while (level->next < level->count) {
		const char *name = level->names[level->next];
		size_t len = level->path_len;

		if (level->next > 0)
			free(level->names[level->next - 1]);
		level->next++;
		walk->names_held--;
		if (len + 1 + strlen(name) >= sizeof(walk->path))
			continue;
		if (len > 0)
			walk->path[len++] = '/';
		strcpy(walk->path + len, name);
		return name;
	}
	return NULL;
}

/* Whether name is where the cursor passes; then the cursor moves on to the next component. */
static bool is_passed(struct walk *walk, const char *name)
{
	size_t len = walk->after ? strcspn(walk->after, "/") : 0;

	if (len == 0 || strlen(name) != len || memcmp(name, walk->after, len) != 0) {
		walk->after = NULL;
		return false;
	}
	walk->after = walk->after[len] ? walk->after + len + 1 : NULL;
	return true;
}

int walk_next(struct walk *walk, struct walk_entry *ret_entry)
{
	while (walk->depth > 0) {
		struct walk_level *level = &walk->levels[walk->depth - 1];
		const char *name;
		bool was_before;
		int r = 0;

		if (walk->is_descending) {
			walk->is_descending = false;
			r = descend(walk, level->names[level->next - 1]);
			if (r < 0)
				return r;
			continue;
		}
		name = next_name(walk, level);
		if (!name) {
			if (level->is_partial && level->next > 0)
				r = rescan(walk, level);
			else
				pop(walk);
			if (r < 0)
				return r;
			continue;
		}
		was_before = is_passed(walk, name);
		if (fstatat(walk->dir, name, &ret_entry->stat, AT_SYMLINK_NOFOLLOW) < 0) {
			walk->after = NULL;
			continue;
		}
		if (S_ISDIR(ret_entry->stat.st_mode) && walk->depth < walk->depth_max)
			walk->is_descending = true;
		else
			walk->after = NULL;
		if (was_before)
			continue;
		ret_entry->path = walk->path;
		ret_entry->name = name;
		ret_entry->dir = walk->dir;
		return 1;
	}
	return 0;
}

void walk_prune(struct walk *walk)
{
	walk->is_descending = false;
}

int walk_open(struct walk *walk, int root, size_t depth_max, size_t names_max, const char *after)
{
	*walk = (struct walk){
		.root = root,
		.depth_max = depth_max,
		.names_max = names_max,
		.after = after[0] ? after : NULL,
		.entries = mem_new(DIRENTS_LEN),
	};
	walk->dir = path_open(root, ".", O_RDONLY | O_DIRECTORY, 0);
	return walk->dir < 0 ? walk->dir : push(walk, 0);
}

void walk_close(struct walk *walk)
{
	while (walk->depth > 0)
		level_clear(walk, &walk->levels[--walk->depth]);
	free(walk->levels);
	free(walk->entries);
	fd_close(walk->dir);
	walk->dir = -1;
}
