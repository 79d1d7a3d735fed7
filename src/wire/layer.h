/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream by which the daemon has a layer of an image written. The daemon parses the layer; the
 * writer, the agent's program in a user namespace and a root directory that hold nothing but the
 * new layer, makes what it is told. Both sides treat the other as hostile.
 *
 *   daemon -> writer   items, the last one LAYER_ITEM_END
 *   writer -> daemon   once, at the end or at the first failure: u32 errno (0: all is on the disk),
 *                      str name of the item that failed
 *
 * An item: u8 kind, u32 mode, u32 uid, u32 gid, u64 mtime in ns, u64 size, str name, str target,
 * u32 count of attributes, each a str name and a u32 length with as many bytes. The content of a
 * file follows its item as pieces: u64 offset, u32 length (0: no more), bytes. Strings are as in
 * wire/pack.h. Names are relative and plain; "" is the layer's root.
 *
 * Trees of files come back in the same form: the reader, confined in the same way with the tree as
 * its root directory, read-only, sends an item for each file in the order of their paths and
 * LAYER_ITEM_END, or LAYER_ITEM_FAILED with the name that failed and the errno as its size. With
 * LAYER_READER_NAMES there is no content, and files have no attributes; every item but these two is
 * followed by u64 inode and u64 time of the last change in ns.
 *
 * With LAYER_READER_CHANGES the tree is the upper layer of an overlay, and the reader has two more
 * descriptors: what is below that layer, and both together. Every item is then followed by a u8
 * besides, enum layer_below. Whiteouts have the size of what they hide; instead of opaque
 * directories there is a whiteout for each name that one hides.
 */
#pragma once

#define LAYER_WRITER	     "layer-writer" /* the first argument of the program */
#define LAYER_WRITER_FD	     3		    /* the stream, of both */
#define LAYER_READER	     "tree-reader"
#define LAYER_READER_NAMES   "names"   /* its second argument: without content */
#define LAYER_READER_CHANGES "changes" /* the same, beside what is below */
#define LAYER_BELOW_FD	     4
#define LAYER_MERGED_FD	     5
#define LAYER_NAME_MAX	     4096
#define LAYER_XATTR_NAME_MAX 256
#define LAYER_VALUE_MAX	     65536
#define LAYER_PIECE_MAX	     (1u << 20)

enum layer_item {
	LAYER_ITEM_END,
	LAYER_ITEM_FILE,
	LAYER_ITEM_DIRECTORY,
	LAYER_ITEM_SYMLINK,
	LAYER_ITEM_HARDLINK,
	LAYER_ITEM_FIFO,
	LAYER_ITEM_WHITEOUT,
	LAYER_ITEM_OPAQUE,
	LAYER_ITEM_FAILED, /* from a reader */
};

/* Whether what is below an upper layer has the name too. */
enum layer_below {
	LAYER_BELOW_NONE,
	LAYER_BELOW_OTHER,
	LAYER_BELOW_SAME, /* both are directories, with the same owners and modes */
	LAYER_BELOW_COUNT,
};
