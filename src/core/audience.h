/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who watches a process, and how they hear of what happens. They are told without a lock, on a copy of
 * the list with a reference of each: so anybody may join or leave meanwhile, from within an event too.
 */
#pragma once

#include "core/process.h"

/* process_watch() and process_unwatch(). */
bool audience_add(struct process *process, const struct process_events *events, void *arg)
	must_check;
void audience_remove(struct process *process, void *arg);

void audience_tell_started(struct process *process, uint32_t pid);
void audience_tell_output(struct process *process, int stream, const uint8_t *data, size_t len);
void audience_tell_drained(struct process *process);

/* From here on nobody can join, but to wait for the last survivor. Everybody else leaves. */
void audience_tell_ended(struct process *process);

/* All leave. */
void audience_tell_deserted(struct process *process);

/* All leave, and are told nothing. */
void audience_dismiss(struct process *process);
