/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a layer of an image into the root directory (wire/layer.h). The keeper starts this same
 * program for it, as root of a user namespace whose root directory is the new layer and nothing
 * else, so the worst that a hostile layer can do is to spoil itself.
 */
#pragma once

/* Writes what comes on the stream; the exit status: 0 if all of it is on the disk. */
int layer_writer_run(int stream_fd);
