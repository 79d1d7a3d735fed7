/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether background processes keep their sandbox awake: those that are marked to, and those that use more than
 * one per cent of a core, averaged over a minute or two. Start commands never do. The agent tells how much
 * processor time each has used (AGENT_USAGE in wire/agent.h); the reaper asks once a minute, and when a sandbox
 * would be stopped.
 */
#pragma once

#include "model/process/process_record.h"

#include <stddef.h>

struct process;
struct sandbox;
struct unpack;

enum process_activity {
	PROCESS_ACTIVITY_NONE,
	PROCESS_ACTIVITY_ASKED, /* the agent was asked: look again in a moment */
	PROCESS_ACTIVITY_BUSY,
};

#define PROCESS_USAGE_ROUND_MS 60000
#define PROCESS_USAGE_TEXT_MAX 80

/* A round of the reaper: asks the agent about the background processes of a sandbox. */
void process_usage_sample(struct sandbox *sandbox);

/* Whether a sandbox that is about to be stopped is busy. An agent that does not answer is not. */
enum process_activity process_usage_check(struct sandbox *sandbox);

/* Says which process keeps the sandbox awake, as far as the last round knows; false if none does. */
bool process_usage_explain(struct sandbox *sandbox, char text[PROCESS_USAGE_TEXT_MAX]);

/* AGENT_USED of a process. */
int process_usage_take(struct process *process, struct unpack *in) must_check;
