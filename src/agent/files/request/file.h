/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file requests of wire/agent.h, one function each, run by a helper process as root of the
 * sandbox with umask 0.
 *
 * A function that returns -errno has not answered yet, or owes the second answer: its caller sends
 * that as the failure. A function that returns 0 has sent all its answers; where it stopped in the
 * middle, the end of the channel says so.
 */
#pragma once

#include "agent/files/helper_io.h"
#include "agent/link/payload.h"

int file_stat(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_read(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_write(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_list(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_mkdir(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_move(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_remove(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_pack(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_unpack(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_watch(struct helper_io *helper_io, const struct payload_file *request) must_check;
int file_prepare(struct helper_io *helper_io, const struct payload_file *request) must_check;

/* The work of a helper for a struct payload_file: calls one of the above, and sends its failure. */
void file_serve(struct helper_io *helper_io, const void *request);

/* Sends the answer where no helper could be started; the caller keeps the channel. */
void file_refuse(int channel, int errnum);
