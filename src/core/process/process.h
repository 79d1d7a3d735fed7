/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in a sandbox, from its start until nothing of it is left.
 *
 * A kept one has a row in the database and its output on disk (output_log.h): it goes on when its client
 * leaves and when the daemon does, and can be looked at until the workspace is purged. Of one that is
 * not kept (an exec whose answer is one document) nothing is written: it ends with its client, and a
 * daemon that finds it without one ends it.
 *
 * Whoever is interested watches. Output is taken from the agent as fast as the disk takes it; if the
 * process is paced, as fast as its reader says (process_consumed), and the command waits. The end is
 * reported exactly once, also when the sandbox dies under it, and after it was written down.
 */
#pragma once

#include "base/buf.h"
#include "core/engine/sandbox_handle.h"
#include "core/output/output_log.h"
#include "core/process/process_events.h"
#include "model/process/process_record.h"
#include "wire/agent.h"

struct process;

/* Groups that a command is in besides its own. */
struct process_groups {
	uint32_t list[AGENT_GROUPS_MAX];
	uint32_t count;
};

struct process_spec {
	const char *const *argv; /* NULL-terminated */
	const char *const *env;	 /* NULL-terminated, "NAME=value" */
	const char *cwd;
	uint32_t uid, gid;
	struct process_groups groups;
	const void *input; /* standard input, or NULL for none */
	size_t input_len;
	const char *title;     /* what is remembered of it instead of argv; NULL: argv is */
	bool keeps_input_open; /* more may come with process_write */
	bool is_line;	       /* argv is a shell and the line it was given */
	bool is_background;
	danger_set danger; /* what it was flagged for */
	bool keeps_awake;  /* the sandbox is not idle while it runs */
	bool is_kept;
	bool is_paced;
	bool is_pty;
	bool has_result;	/* it has descriptor 3 for results (wire/agent.h) */
	bool is_isolated;	/* in an isolated command of its own (driver.h) */
	uint16_t columns, rows; /* of the terminal */
	bool kills_tree;	/* the timeout ends all that came from it */
	uint64_t timeout_ms;	/* 0: none */
};

/* Makes a process that does not run yet; the sandbox is woken if need be. Counted. */
int process_new(struct sandbox *sandbox, struct process **ret_process, struct err *err) must_check;
struct process *process_ref(struct process *process);
void process_unref(struct process *process);

static inline void process_unrefp(struct process **process)
{
	process_unref(*process);
}

/*
 * Starts it. From here on events may come, also before this returns. If it fails none come, and the
 * watches are released.
 */
int process_run(struct process *process, const struct process_spec *spec, struct err *err)
	must_check;

/* Watches it, with a reference of arg that is the watch's; false if nothing more can happen that is of
 * interest, because it has ended already, and then the reference stays the caller's. */
bool process_watch(struct process *process, const struct process_events *events, void *arg)
	must_check;

/* No event begins after it, but one may be under way. Harmless if the watch is over. */
void process_unwatch(struct process *process, void *arg);

/* A copy of what is known of it now, which the caller ends with process_record_fini. */
void process_read(struct process *process, struct process_record *ret_record);

/* Its log, borrowed; NULL if it is not kept. */
struct output_log *process_log(struct process *process);

/* The reader of a paced one has dealt with all before offset. */
void process_consumed(struct process *process, uint64_t offset);

/* A terminal was sent all before offset; and how far any was. Output of the time before this daemon counts as sent. */
void process_note_shown(struct process *process, uint64_t offset);
uint64_t process_shown(struct process *process);

/* One more reader sets the pace, or one less. With several the fastest counts, without any the disk. */
void process_pace(struct process *process);
void process_unpace(struct process *process);

/*
 * Adds to standard input, and closes it after that. All or nothing: ERR_RATE (stdin_full) when too much
 * waits already. *ret_waiting, if asked for, is how much waits then.
 */
int process_write(struct process *process, const void *data, size_t len, bool close,
	size_t *ret_waiting, struct err *err) must_check;

/* The same with the last input of one that nobody sees and that is soon gone: that no more can come is not written down. */
int process_write_last(struct process *process, const void *data, size_t len, struct err *err)
	must_check;

int process_signal(struct process *process, int signal, bool whole_tree, struct err *err)
	must_check;
int process_resize(struct process *process, uint16_t columns, uint16_t rows, struct err *err)
	must_check;

/* Kills it, with all its children or alone; before process_run, as soon as it runs. */
void process_kill(struct process *process, bool whole_tree);

/* Why it never ran, in that directory, as an error; 0 if it did, or if that it could not be executed is its result. */
int process_explain_end(const struct process_end *end, const char *cwd, struct err *err) must_check;

/* For link events (sandbox_link.c): hands a frame to the process it names. */
struct frame;
int process_frame(struct sandbox *sandbox, const struct frame *frame);
