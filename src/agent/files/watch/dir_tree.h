/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that a watch knows, as it believes them to be: found by the number of their
 * inotify watch, or by parent and name. It only uses memory and looks at no file system.
 */
#pragma once

#include "base/mem.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct dir_node {
	int wd;
	uint32_t round; /* the last synchronization of the whole tree that met it */
	bool is_unread; /* its entries were not read yet */
	dev_t device;
	ino_t inode;
	char *name; /* in its parent; "" for the root */
	struct dir_node *parent, *first_child, *next_sibling, *prev_sibling;
	struct dir_node *next_by_wd, *next_by_name; /* in a bucket */
};

struct dir_tree {
	struct dir_node *root;
	struct dir_node **by_wd, **by_name;
	size_t buckets; /* a power of two */
	size_t count;
};

/* Called for each directory that is removed. */
typedef void (*dir_tree_fn)(void *arg, int wd);

void dir_tree_fini(struct dir_tree *tree);

/* Adds a directory that is not in the tree; parent is NULL for the root, which comes first. */
struct dir_node *dir_tree_add(struct dir_tree *tree, struct dir_node *parent, const char *name,
	int wd, const struct stat *stat);

struct dir_node *dir_tree_find(const struct dir_tree *tree, int wd);
struct dir_node *dir_tree_child(
	const struct dir_tree *tree, const struct dir_node *parent, const char *name);

/* Whether node is ancestor, or somewhere below it. */
bool dir_tree_is_within(const struct dir_node *node, const struct dir_node *ancestor);

/*
 * Moves node with all that is below it. Parent must not be within node, and must have no child of
 * that name.
 */
void dir_tree_move(
	struct dir_tree *tree, struct dir_node *node, struct dir_node *parent, const char *name);

/* Removes node with all that is below it, however deep. */
void dir_tree_remove(struct dir_tree *tree, struct dir_node *node, dir_tree_fn removed, void *arg);

/* Removes all that the given synchronization has not met. */
void dir_tree_remove_unmet(struct dir_tree *tree, uint32_t round, dir_tree_fn removed, void *arg);

/*
 * The path of name in node ("": of node), relative to the root. -ENAMETOOLONG if it is too long for
 * a path.
 */
int dir_tree_path(const struct dir_node *node, const char *name, char path[AGENT_PATH_MAX])
	must_check;
