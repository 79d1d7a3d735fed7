/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchers of a process. Events are delivered without a lock, to a copy of the list with a
 * reference to each watcher; so watchers may join or leave meanwhile, also from within an event.
 */
#pragma once

#include "core/process/process_events.h"

struct process;

/* process_watch() and process_unwatch(). */
bool process_watchers_add(struct process *process, const struct process_events *events, void *arg)
	must_check;
void process_watchers_remove(struct process *process, void *arg);

void process_watchers_tell_started(struct process *process, uint32_t pid);
void process_watchers_tell_output(
	struct process *process, int stream, const uint8_t *data, size_t len);
void process_watchers_tell_drained(struct process *process);

/*
 * Ends all watches but those that wait for the last survivor; only such can be added from here on.
 */
void process_watchers_tell_ended(struct process *process);

/* All leave. */
void process_watchers_tell_deserted(struct process *process);

/* All leave, and are told nothing. */
void process_watchers_dismiss(struct process *process);
