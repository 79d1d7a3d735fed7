/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of an isolated command: starts one command there, for the sandbox's agent, and ends with it. */
#pragma once

/*
 * Returns the exit code. sock is the isolated command's socket (wire/agent.h has its protocol);
 * score_fd is that of oom_score.h.
 */
int isolated_init_run(int sock, int score_fd);
