/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox with a command in it, a watcher that notes all it hears, and an agent that the test plays. */
#pragma once

#include "base/buf.h"
#include "core/process/process.h"
#include "core_fixture.h"

/* What a watcher heard. */
struct heard {
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	unsigned starts, drains, ends, releases;
	uint32_t pid;
	struct buf streams[2];
	struct process_end end;
	/* Called first of all in an event, without the lock; may be NULL. */
	void (*at_output)(struct heard *heard, const uint8_t *data, size_t len);
	void (*at_end)(struct heard *heard);
	void *arg;
};

void heard_init(struct heard *heard);

/* All watches must be over by now, or end soon. */
void heard_fini(struct heard *heard, unsigned watches);

/* Watches a process that must not have ended. */
void heard_watch(struct heard *heard, struct process *process);
extern const struct process_events heard_events;

/* Waits until it is so, and fails the test if that never comes. */
void heard_wait(struct heard *heard, bool (*is_so)(const struct heard *heard));
void heard_wait_output(struct heard *heard, int stream, size_t len);
bool has_started(const struct heard *heard);
bool has_ended(const struct heard *heard);

struct stage {
	struct world *world;
	struct sandbox *sandbox;
	struct process *process;
	struct heard heard;
	int peer;    /* the agent's end of the link */
	uint32_t id; /* of the command */
	bool is_watched;
};

/* A new sandbox, and a process that does not run yet. */
void stage_init(struct stage *stage, struct world *world);

/* The same in a sandbox that was just created while agents are FAKE_AGENT_MANUAL; takes it over. */
void stage_enter(struct stage *stage, struct world *world, struct sandbox *sandbox);

/* Another process in the same sandbox, with a watcher of its own. */
void stage_join(struct stage *stage, struct stage *other);

/* Ends the sandbox, and with it the command, which must have ended once if it ran. */
void stage_fini(struct stage *stage, bool ran);

/* Only the process and its watcher: the sandbox goes on. */
void stage_leave(struct stage *stage, bool ran);

/* What is run if nothing is said: "cat -u" as 1000:1001 in /workspace. */
struct process_spec stage_spec(void);

/* Watches it and runs it; stage_run expects the frame that says so. */
int stage_try(struct stage *stage, const struct process_spec *spec, struct err *err);
void stage_run(struct stage *stage, const struct process_spec *spec);

/* Runs what stage_spec says and lets it start; kept or not. */
void stage_start(struct stage *stage, bool is_kept);

/* Output is acknowledged when so much came since the last time. */
#define STAGE_ACK_STEP (AGENT_OUTPUT_WINDOW / 4)

/* What the agent says about the command. */
void say_started(struct stage *stage, uint32_t pid);
void say_failed(struct stage *stage, uint8_t at, uint32_t errnum);
void say_output(struct stage *stage, uint64_t offset, uint8_t stream, size_t len); /* zeros */
void say_text(struct stage *stage, uint64_t offset, uint8_t stream, const char *text);
/* Of stdout, that the agent has had for so long. */
void say_old_text(struct stage *stage, uint64_t offset, uint32_t age_ms, const char *text);
void say_taken(struct stage *stage, uint64_t taken, uint64_t received);
void say_survivors(struct stage *stage, uint32_t count);

struct exit_words {
	uint32_t status;
	uint64_t end_offset;
	uint32_t oom_kills, refused_forks, flags;
	uint32_t
		denied_count; /* of calls that were refused: numbers from `denied` on, 1, 2, 3... times */
	uint32_t denied;
};

void say_exited_with(struct stage *stage, struct exit_words words);
void say_exited(struct stage *stage, uint32_t status, uint64_t end_offset);

/* What the agent hears about the command. */
void expect_signal(struct stage *stage, int signal, bool whole_tree);
void expect_kill(struct stage *stage); /* with all its children */
void expect_ack(struct stage *stage, uint64_t offset);
void expect_forget(struct stage *stage);

/* The next frame is of that kind, for the command; how many bytes it has. */
uint32_t expect_kind(struct stage *stage, uint16_t kind);

/* What the row of the command says; false if it has none. The caller ends it. */
bool stage_row(struct stage *stage, struct process_record *ret_record);

/* Waits until it has left the list of what runs. */
void stage_await_unlisted(struct stage *stage);

/* Waits until the database writer has done all that it was given so far. */
void world_flush(struct world *world);

/* The kept output of a command, cuts shown as "[cut]". The caller frees it. */
char *read_log(struct output_log *log);
void assert_log(struct output_log *log, const char *expected);
