/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tree of files that the driver sends (driver_ops.read_tree): what a sandbox has written, or
 * a layer of an image. Who sends is confined, but its names are the sandbox's: all of it is checked.
 * Entries come in the order of their paths, each directory before what is in it.
 */
#pragma once

#include "driver/driver.h"
#include "image/layer_reader.h"

/*
 * Has the files sent to sink, from the first to the last; without content, sink.content may be NULL
 * and entries have inode and changed_ns. Has the disk of a sandbox checked before if that is needed.
 */
int tree_stream_run(struct driver *driver, enum driver_tree tree, const char *name,
	bool has_content, const struct layer_sink *sink, struct err *err) must_check;

/* The same from a descriptor. */
int tree_stream_read(int stream, bool has_content, const struct layer_sink *sink, struct err *err)
	must_check;

/*
 * Reads names one after the other, to compare trees: of a tree without content, or (CHANGES) beside
 * what is below it, which is a stack ("": the host's files).
 */
struct tree_stream;

int tree_stream_open(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, struct tree_stream **ret_stream, struct err *err) must_check;
void tree_stream_close(struct tree_stream *stream);

/*
 * The same kept for later: tree_stream_save writes what the reader sends to a new file, at most so
 * many bytes; tree_stream_open_saved takes over such a file, which is whole.
 */
int tree_stream_save(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, int file, int64_t bytes_max, struct err *err) must_check;
bool tree_stream_is_whole(int file);
struct tree_stream *tree_stream_open_saved(int file, bool has_changes);

/* 1 and the next entry, valid until the next call; 0 and NULL at the end. */
int tree_stream_next(struct tree_stream *stream, const struct layer_entry **ret_entry,
	struct err *err) must_check;

static inline void tree_stream_closep(struct tree_stream **stream)
{
	tree_stream_close(*stream);
}
