/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of a cell: starts one command there, for the sandbox's agent, and ends with it. */
#pragma once

/*
 * The exit code. sock is the cell's socket, of which wire/agent.h says what is spoken there; score_fd is
 * that of oom.h.
 */
int warden_run(int sock, int score_fd);
