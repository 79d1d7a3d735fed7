/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database writer: one thread that writes down what the event loop has seen. The event loop must not wait for the
 * database, so it hands such work over; it is done in the order in which it was handed over.
 */
#pragma once

#include "base/err.h"

struct db_writer;

int db_writer_open(struct db_writer **ret_writer, struct err *err) must_check;

/* Does all that was handed over, and ends. */
void db_writer_close(struct db_writer *writer);

/* Calls work(arg) on the database writer's thread, soon. */
void db_writer_put(struct db_writer *writer, void (*work)(void *arg), void *arg);
