/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a process that the keeper confined in a tree of files, read-only: sends the tree
 * to the daemon (wire/layer.h). Of an overlay's upper layer, whiteouts and opaque directories are
 * told as such.
 */
#pragma once

#include <stdbool.h>

enum tree_reader_form {
	TREE_READER_CONTENT,
	TREE_READER_NAMES,
	TREE_READER_CHANGES, /* beside what is below an upper layer (tree_compare.h) */
};

/* Returns the exit status. */
int tree_reader_run(int stream_fd, enum tree_reader_form form);
