/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a command apart from anything that runs: the row in the database. Commands whose
 * output is kept have one; it is written before the command starts and again when it has ended.
 */
#pragma once

#include "base/err.h"
#include "model/id.h"
#include "model/process/danger.h"
#include "model/process/termination.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PROCESS_NAME_MAX  16	      /* "p" and a number of 32 bits, with NUL */
#define PROCESS_START_MAX 32	      /* the name of a start command, with NUL */
#define PROCESS_ARGV_MAX  (64u << 10) /* bytes of a command that are remembered */

struct process_record {
	char sandbox_id[ID_LEN + 1];
	uint32_t number; /* counts up in each sandbox; its name is "p7" */
	uint32_t pid;	 /* inside; 0 until it is known */
	json_t *argv;	 /* array of strings; owned */
	char *cwd;	 /* owned */
	uint32_t uid;
	danger_set danger;  /* what it was flagged for */
	bool is_argv_cut;   /* argv is not all of it */
	bool is_line;	    /* argv is a shell with the line that was asked for */
	bool is_background; /* no client waits for it */
	bool keeps_awake;   /* its sandbox is not idle while it runs */
	bool is_pty;
	bool is_isolated;	       /* in an isolated command of its own */
	bool is_input_open;	       /* standard input can be written to */
	bool kills_tree;	       /* its timeout ends all that came from it */
	char start[PROCESS_START_MAX]; /* the start command that it runs; else empty */
	uint64_t start_digest;	       /* of that as it was then; 0: the sandbox has it no more */
	bool is_ceased;		       /* a client asked for its end: it is not restarted */
	uint32_t restarts;	       /* of that, since the sandbox was started */
	uint64_t timeout_ms;
	int64_t started_at_ms;
	int64_t ended_at_ms; /* 0: it runs */
	int exit_code;
	uint64_t duration_us;
	uint64_t output_bytes; /* written in all, kept or not */
	uint32_t survivors;    /* processes of it that outlived the main one */
	struct termination end;
};

/* The argv becomes an empty list, the cwd an empty string; all else is zero. */
void process_record_init(struct process_record *record);
void process_record_fini(struct process_record *record);

/* A copy that shares nothing with the original. */
void process_record_copy(struct process_record *to, const struct process_record *from);

/* A copy of the first max bytes of an argv, cut between characters; *ret_is_cut if that is not all. */
json_t *process_argv_shorten(const json_t *argv, size_t max, bool *ret_is_cut);

/* The number of a name "p7"; 0 if it is no such name. */
uint32_t process_name_parse(const char *name);
void process_name_format(uint32_t number, char name[PROCESS_NAME_MAX]);

int process_not_found(const char *name, struct err *err);
int process_has_ended(uint32_t number, struct err *err);
