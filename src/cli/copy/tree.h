/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories as tar streams, both ways, with bounded memory.
 *
 * Sending: the client pulls bytes and each pull moves the walk through the directory on by one
 * entry or block. Receiving: the archive comes from a sandbox, that is from an attacker. It is
 * unpacked below one directory and nowhere else (cli/copy/tree_writer.h), without devices, owners and
 * set-user-id bits. Symbolic links are copied as they are in both directions.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "cli/copy/progress.h"
#include "cli/remote/client.h"

#include <stdbool.h>

struct tree_sender;

/* Begins a walk through the directory; entries are named relative to it. */
int tree_sender_new(const char *dir, struct tree_sender **ret, struct err *err) must_check;
void tree_sender_free(struct tree_sender *sender);

/* Leaves out directories of these names, with all that is in them; ended by NULL, borrowed. */
void tree_sender_skip(struct tree_sender *sender, const char *const *names);

/*
 * Leaves out what this says, by its name relative to the directory. Of a directory that is left out what is in it is
 * asked for too if `enters` says so; else it is left out as well.
 */
void tree_sender_filter(struct tree_sender *sender,
	bool (*is_left_out)(void *arg, const char *name), void *arg, bool enters);

/* The read function of a client_source; arg is the sender. */
ssize_t tree_sender_read(void *arg, void *data, size_t size, struct err *err);

/* Where a tar stream comes from: like client_read. */
struct tree_input {
	ssize_t (*read)(void *arg, void *data, size_t size, struct err *err);
	void *arg;
};

/* Unpacks the stream below dir_fd. What was unpacked before a failure stays. */
int tree_receive(int dir_fd, const struct tree_input *input, struct err *err) must_check;
