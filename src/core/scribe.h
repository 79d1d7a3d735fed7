/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scribe: one thread that writes down what the reactor has seen. The reactor must not wait for the
 * database, so it hands such work over; it is done in the order in which it was handed over.
 */
#pragma once

#include "base/err.h"

struct scribe;

int scribe_open(struct scribe **ret_scribe, struct err *err) must_check;

/* Does all that was handed over, and ends. */
void scribe_close(struct scribe *scribe);

/* Calls work(arg) on the scribe's thread, soon. */
void scribe_put(struct scribe *scribe, void (*work)(void *arg), void *arg);
