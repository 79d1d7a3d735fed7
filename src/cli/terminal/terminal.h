/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal that the program runs in: raw while a remote shell has it, and as it was before in
 * every other moment, also after a signal or a crash.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <termios.h>

struct terminal {
	struct termios before;
	bool is_raw;
	int signal_fd; /* window size and job control; -1 until terminal_open */
};

#define TERMINAL_INIT ((struct terminal){.signal_fd = -1})

struct terminal_size {
	int cols;
	int rows;
};

/* What a signal of the terminal asks for. */
enum terminal_event {
	TERMINAL_NOTHING,
	TERMINAL_RESIZED, /* the size may be another */
};

/* Whether standard input is one. */
bool terminal_is_there(void);

/* Of the first of the three standard descriptors that is a terminal; else 80 by 24. */
struct terminal_size terminal_size(void);

/* Takes the state of standard input, which must be a terminal, and holds its signals. */
int terminal_open(struct terminal *terminal, struct err *err) must_check;
void terminal_close(struct terminal *terminal);

int terminal_make_raw(struct terminal *terminal, struct err *err) must_check;
void terminal_restore(struct terminal *terminal);

/* Handles a signal if one has come; being stopped and continued happens in here. */
int terminal_take_signal(struct terminal *terminal, enum terminal_event *ret, struct err *err)
	must_check;
