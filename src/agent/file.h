/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file requests of wire/agent.h, one function each, run by a helper process as root of the
 * sandbox with umask 0.
 *
 * A function that returns -errno has not answered yet, or owes the second answer: its caller sends
 * that as the failure. One that returns 0 has said all there was to say; where the conversation
 * broke off in the middle, the end of the channel says so.
 */
#pragma once

#include "agent/dialog.h"
#include "agent/payload.h"

int file_stat(struct dialog *dialog, const struct payload_file *request) must_check;
int file_read(struct dialog *dialog, const struct payload_file *request) must_check;
int file_write(struct dialog *dialog, const struct payload_file *request) must_check;
int file_list(struct dialog *dialog, const struct payload_file *request) must_check;
int file_mkdir(struct dialog *dialog, const struct payload_file *request) must_check;
int file_move(struct dialog *dialog, const struct payload_file *request) must_check;
int file_remove(struct dialog *dialog, const struct payload_file *request) must_check;
int file_pack(struct dialog *dialog, const struct payload_file *request) must_check;
int file_unpack(struct dialog *dialog, const struct payload_file *request) must_check;
int file_watch(struct dialog *dialog, const struct payload_file *request) must_check;

/* What a helper does for a struct payload_file: one of the above, and the failure if there is one. */
void file_serve(struct dialog *dialog, const void *request);

/* The answer where no helper could be started; the channel stays the caller's. */
void file_refuse(int channel, int errnum);
