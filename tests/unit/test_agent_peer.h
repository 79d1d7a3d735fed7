/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other side of an agent, for tests: keeper and daemon in one. The agent runs in a forked
 * child; every wait has a deadline, after which the test fails.
 */
#pragma once

#include "agent/link/listener.h"
#include "base/buf.h"
#include "deadline.h"
#include "wire/agent.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t agent;
	int lifeline;
	int link, control;
	struct buf in;	  /* bytes of the link, not yet taken as frames */
	char *group_path; /* the control group of the agent; NULL: it has none */
};

/* A frame that was received; free the payload with peer_frame_free(). */
struct peer_frame {
	uint16_t kind;
	uint32_t id;
	uint32_t len;
	uint8_t *payload;
};

/* What became of a command, gathered by peer_collect(). */
struct peer_result {
	bool exited;
	uint32_t wait_status;
	uint64_t end_offset;
	uint64_t cpu_us, peak_bytes, duration_us;
	int failed_stage, failed_errno;
	uint32_t pid;
	uint64_t stdin_acked, stdin_received;
	uint32_t survivors; /* as told last */
	unsigned survivors_told;
	uint32_t oom_kills, refused_forks, flags;
	uint32_t denied_count;
	uint32_t denied[AGENT_DENIED_MAX][2]; /* number, times */
	struct buf out, err;
	uint64_t received; /* offset after the last byte */
	uint32_t age_ms;   /* that the last bytes came with */
};

/* With a control group that is the agent's own, if we are root and there is a cgroup2 tree. */
void peer_start(struct peer *peer);
void peer_start_without_group(struct peer *peer);
/* As PID 1 of a namespace of its own, as it is in a sandbox. */
void peer_start_init(struct peer *peer);
/*
 * And with a mount table of its own, in which the counters of memory and processes are ordinary files
 * below /sys/fs/cgroup that stand at 7 and 5; only for root.
 */
void peer_start_with_mounts(struct peer *peer);
/* Under a filter that refuses a number of system calls, with the agent as its listener. */
void peer_start_filtered(struct peer *peer, const int *refused, size_t count);
/* As no keeper starts it: it listens, and SIGTERM ends it. */
void peer_start_listening(struct peer *peer, const struct listener_config *listener);
/* Whether commands have groups; if not, says that what the test is about is not proven. */
bool peer_has_groups(const struct peer *peer);
/* How many groups there are below the agent's. */
size_t peer_count_groups(const struct peer *peer);
void peer_stop(struct peer *peer); /* by the end of the lifeline */

/* For cmocka: a test whose state is a peer that is attached to its agent. */
int peer_setup(void **state);
int peer_teardown(void **state);
void peer_fini(struct peer *peer); /* of an agent that has ended */
pid_t peer_wait(struct peer *peer, int *ret_status);

/* Gives the agent a new link and attaches; the ids of AGENT_HELLO, their number returned. */
size_t peer_attach(struct peer *peer, uint32_t *ids, size_t size);
/* The same over a link that is there. */
size_t peer_attach_over(struct peer *peer, uint32_t *ids, size_t size);
void peer_open_link(struct peer *peer); /* without attaching */
void peer_drop_link(struct peer *peer);

void peer_send(struct peer *peer, uint16_t kind, uint32_t id, const void *payload, size_t len);
void peer_send_u32(struct peer *peer, uint16_t kind, uint32_t id, uint32_t value);
void peer_signal(struct peer *peer, uint32_t id, int signal, bool whole_tree);
void peer_ack(struct peer *peer, uint32_t id, uint64_t offset);

/* As the caller's own uid, in "/", with PATH; argv ends with NULL. */
void peer_exec(struct peer *peer, uint32_t id, unsigned flags, const char *const *argv);
void peer_exec_as(struct peer *peer, uint32_t id, unsigned flags, uint32_t uid, const char *cwd,
	const char *path, const char *const *argv);
void peer_shell(struct peer *peer, uint32_t id, unsigned flags, const char *line);
/*
 * A isolated init in a pid namespace of its own, as the keeper makes one for an isolated command: its pid, and the agent's end of
 * its socket, for a command that it shall start.
 */
pid_t peer_start_isolated_init(const struct peer *peer, int *ret_sock);
void peer_shell_in_cell(struct peer *peer, uint32_t id, unsigned flags, const char *line, int sock);
void peer_resize(struct peer *peer, uint32_t id, uint16_t columns, uint16_t rows);

/* The next frame; false when the link ended. */
bool peer_next(struct peer *peer, struct peer_frame *ret_frame);
bool peer_next_within(struct peer *peer, int timeout_ms, struct peer_frame *ret_frame);
void peer_frame_free(struct peer_frame *frame);
bool peer_link_ends(struct peer *peer);

/* Takes frames of id until it exited or failed, acknowledging all output if told to. */
void peer_collect(struct peer *peer, uint32_t id, bool acknowledge, struct peer_result *result);
/* Adds one frame to a result. */
void peer_take(struct peer_result *result, const struct peer_frame *frame);
void peer_result_init(struct peer_result *result);
void peer_result_fini(struct peer_result *result);

/* Runs a line of shell to its end. */
void peer_run(struct peer *peer, uint32_t id, const char *line, struct peer_result *result);
/* Takes frames until that many bytes of standard output are there, or such a text is in them. */
void peer_wait_for_output(struct peer *peer, struct peer_result *result, size_t len);
void peer_wait_for_text(struct peer *peer, struct peer_result *result, const char *text);
/* Takes frames until the last process of id is gone. */
void peer_wait_for_nobody(struct peer *peer, uint32_t id, struct peer_result *result);
void peer_assert_text(const struct buf *buf, const char *text);
/* Whether the process that wrote its number into dir/file is gone, or soon. */
bool peer_is_gone(const char *dir, const char *file);

/* Hands the agent a descriptor, which stays the caller's. */
void peer_pass(struct peer *peer, uint32_t kind, uint32_t number, int fd);
/* Opens a channel that begins with these bytes; the daemon's end. */
int peer_open_channel(struct peer *peer, const void *first, size_t len);

/* Starts a file request; the daemon's end of its channel. args are what follows the op. */
int peer_file(struct peer *peer, enum agent_file_op op, const struct buf *args);
int peer_file_path(struct peer *peer, enum agent_file_op op, const char *path);

struct peer_answer {
	struct agent_file_answer answer;
	char target[AGENT_PATH_MAX];
};

/* False at the end of the channel. */
bool peer_answer(int channel, struct peer_answer *ret_answer);
/* Reads an answer that must come, and gives its errnum. */
int peer_errnum(int channel, struct peer_answer *ret_answer);
bool peer_read(int channel, void *data, size_t len);
bool peer_at_end(int channel);

/* Whether other users exist for us: root, and not of a user namespace with one uid. */
bool peer_has_other_users(void);

/* A new directory, removed by peer_remove_temp(). */
char *peer_make_temp(void);
void peer_remove_temp(char *dir);

/* Kills a command and whoever came of it, among them those whose pids are in the files a, b and c of dir. */
void peer_kill_family(struct peer *peer, uint32_t id, const char *dir, struct peer_result *result);

/* The number that a line for the shell prints. */
size_t peer_number_of(const char *line);
