/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/process_tree.h"

#include "agent/machine/pid_walk.h"
#include "base/buf.h"
#include "base/fd.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Rounds go on while one finds a new process: processes may fork while they are being counted. */
#define ROUNDS_MAX	10
#define PROCESSES_BYTES (8u * 1024 * 1024)

struct process_row {
	pid_t pid;
	pid_t parent;
	pid_t group;
	pid_t session;
	bool is_descendant;
};

/*
 * "pid (name) state ppid pgrp session ...": the name may hold any character, so its end is searched
 * from behind.
 */
static bool read_row(const struct pid_walk *walk, struct process_row *ret_row)
{
	char path[32], text[512];
	size_t len = strlen(walk->name);
	char *at;

	if (len + sizeof("/stat") > sizeof(path))
		return false;
	memcpy(path, walk->name, len);
	memcpy(path + len, "/stat", sizeof("/stat"));
	if (fd_read_file(walk->proc_fd, path, text, sizeof(text)) <= 0)
		return false;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return false;
	at += 3;
	*ret_row = (struct process_row){.pid = walk->pid};
	ret_row->parent = (pid_t)strtol(at, &at, 10);
	ret_row->group = (pid_t)strtol(at, &at, 10);
	ret_row->session = (pid_t)strtol(at, &at, 10);
	return true;
}

/* Reads all processes. */
static void read_rows(struct buf *rows)
{
	struct pid_walk walk;
	struct process_row row;

	pid_walk_open(&walk);
	while (pid_walk_next(&walk)) {
		if (read_row(&walk, &row))
			buf_append(rows, &row, sizeof(row));
	}
	pid_walk_close(&walk);
}

static int compare_pids(const void *a, const void *b)
{
	const struct process_row *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

static struct process_row *find(const struct buf *rows, pid_t pid)
{
	struct process_row key = {.pid = pid};

	if (rows->len == 0)
		return NULL;
	return bsearch(&key, rows->data, rows->len / sizeof(key), sizeof(key), compare_pids);
}

/*
 * Marks the session of leader, and then children of the marked until there are no more. Processes
 * of earlier rounds count, though they may have died since: their sessions may not have.
 */
static void mark_descendants(struct buf *rows, const struct buf *signalled, pid_t leader)
{
	struct process_row *all = (struct process_row *)(void *)rows->data;
	size_t count = rows->len / sizeof(*all);
	bool is_changed;

	do {
		is_changed = false;
		for (size_t i = 0; i < count; i++) {
			struct process_row *row = &all[i];
			struct process_row *parent = find(rows, row->parent);

			if (row->is_descendant)
				continue;
			row->is_descendant = row->pid == leader || row->session == leader ||
					     (parent && parent->is_descendant) ||
					     find(signalled, row->parent) ||
					     find(signalled, row->session);
			is_changed |= row->is_descendant;
		}
	} while (is_changed);
}

/*
 * One round: signals the descendants that are not in `signalled` yet, and adds them; returns
 * whether there were any. It finds all before it signals the first, because the children of a dead
 * process have another parent.
 */
static bool signal_round(pid_t leader, int signal, bool with_group, struct buf *signalled)
{
	struct buf rows = BUF_INIT(PROCESSES_BYTES);
	struct buf found = BUF_INIT(PROCESSES_BYTES);
	bool is_any;
	struct process_row *all;
	size_t count;

	read_rows(&rows);
	all = (struct process_row *)(void *)rows.data;
	count = rows.len / sizeof(*all);
	if (count > 0)
		qsort(all, count, sizeof(*all), compare_pids);
	mark_descendants(&rows, signalled, leader);
	/* The group at once and by its number: a process in it cannot fork in between. */
	if (with_group)
		kill(-leader, signal);
	for (size_t i = 0; i < count; i++) {
		if (!all[i].is_descendant || all[i].pid == 1 || find(signalled, all[i].pid))
			continue;
		if (all[i].group != leader && all[i].pid != leader)
			kill(all[i].pid, signal);
		buf_append(&found, &all[i], sizeof(all[i]));
	}
	is_any = found.len > 0;
	if (is_any && buf_append(signalled, found.data, found.len) == 0)
		qsort(signalled->data, signalled->len / sizeof(*all), sizeof(*all), compare_pids);
	buf_fini(&found);
	buf_fini(&rows);
	return is_any;
}

static void signal_rounds(pid_t leader, int signal, bool with_group)
{
	struct buf signalled = BUF_INIT(PROCESSES_BYTES);

	for (int i = 0; i < ROUNDS_MAX; i++) {
		if (!signal_round(leader, signal, with_group && i == 0, &signalled))
			break;
	}
	buf_fini(&signalled);
}

void process_tree_signal(pid_t leader, int signal)
{
	signal_rounds(leader, signal, true);
}

void process_tree_signal_own(int signal)
{
	signal_rounds(getpid(), signal, false);
}
