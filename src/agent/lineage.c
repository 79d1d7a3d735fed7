/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lineage.h"

#include "agent/pid_walk.h"
#include "base/buf.h"
#include "base/fd.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* While a round finds somebody new, one more: processes may fork while they are being counted. */
#define ROUNDS_MAX	10
#define PROCESSES_BYTES (8u * 1024 * 1024)

struct member {
	pid_t pid;
	pid_t parent;
	pid_t group;
	pid_t session;
	bool is_kin;
};

/* "pid (name) state ppid pgrp session ...": the name may hold anything, so look for its end. */
static bool read_member(const struct pid_walk *walk, struct member *ret_member)
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
	*ret_member = (struct member){.pid = walk->pid};
	ret_member->parent = (pid_t)strtol(at, &at, 10);
	ret_member->group = (pid_t)strtol(at, &at, 10);
	ret_member->session = (pid_t)strtol(at, &at, 10);
	return true;
}

/* All processes there are. */
static void read_members(struct buf *members)
{
	struct pid_walk walk;
	struct member member;

	pid_walk_open(&walk);
	while (pid_walk_next(&walk)) {
		if (read_member(&walk, &member))
			buf_append(members, &member, sizeof(member));
	}
	pid_walk_close(&walk);
}

static int compare_pids(const void *a, const void *b)
{
	const struct member *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

static struct member *find(const struct buf *members, pid_t pid)
{
	struct member key = {.pid = pid};

	if (members->len == 0)
		return NULL;
	return bsearch(&key, members->data, members->len / sizeof(key), sizeof(key), compare_pids);
}

/*
 * Marks the session of leader, and then children of the marked until there are no more. Kin of
 * former rounds count, though they may have died since: their sessions may not have.
 */
static void mark_kin(struct buf *members, const struct buf *kin, pid_t leader)
{
	struct member *all = (struct member *)(void *)members->data;
	size_t count = members->len / sizeof(*all);
	bool is_changed;

	do {
		is_changed = false;
		for (size_t i = 0; i < count; i++) {
			struct member *member = &all[i];
			struct member *parent = find(members, member->parent);

			if (member->is_kin)
				continue;
			member->is_kin = member->pid == leader || member->session == leader ||
					 (parent && parent->is_kin) || find(kin, member->parent) ||
					 find(kin, member->session);
			is_changed |= member->is_kin;
		}
	} while (is_changed);
}

/*
 * One round: signals the kin that are not in `kin` yet, and adds them; whether there were any. All
 * are found before the first is signalled, because the children of the dead look like anybody's.
 */
static bool signal_round(pid_t leader, int signal, bool with_group, struct buf *kin)
{
	struct buf members = BUF_INIT(PROCESSES_BYTES);
	struct buf found = BUF_INIT(PROCESSES_BYTES);
	bool is_anybody;
	struct member *all;
	size_t count;

	read_members(&members);
	all = (struct member *)(void *)members.data;
	count = members.len / sizeof(*all);
	if (count > 0)
		qsort(all, count, sizeof(*all), compare_pids);
	mark_kin(&members, kin, leader);
	/* The group at once and by its number: whoever is in it cannot fork in between. */
	if (with_group)
		kill(-leader, signal);
	for (size_t i = 0; i < count; i++) {
		if (!all[i].is_kin || all[i].pid == 1 || find(kin, all[i].pid))
			continue;
		if (all[i].group != leader && all[i].pid != leader)
			kill(all[i].pid, signal);
		buf_append(&found, &all[i], sizeof(all[i]));
	}
	is_anybody = found.len > 0;
	if (is_anybody && buf_append(kin, found.data, found.len) == 0)
		qsort(kin->data, kin->len / sizeof(*all), sizeof(*all), compare_pids);
	buf_fini(&found);
	buf_fini(&members);
	return is_anybody;
}

static void signal_rounds(pid_t leader, int signal, bool with_group)
{
	struct buf kin = BUF_INIT(PROCESSES_BYTES);

	for (int i = 0; i < ROUNDS_MAX; i++) {
		if (!signal_round(leader, signal, with_group && i == 0, &kin))
			break;
	}
	buf_fini(&kin);
}

void lineage_signal(pid_t leader, int signal)
{
	signal_rounds(leader, signal, true);
}

void lineage_signal_own(int signal)
{
	signal_rounds(getpid(), signal, false);
}
