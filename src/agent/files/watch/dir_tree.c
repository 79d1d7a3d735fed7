/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/watch/dir_tree.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define FIRST_BUCKETS 16

static size_t wd_bucket(const struct dir_tree *tree, int wd)
{
	return (size_t)(unsigned)wd & (tree->buckets - 1);
}

static size_t name_bucket(
	const struct dir_tree *tree, const struct dir_node *parent, const char *name)
{
	uint64_t hash = (uint64_t)(uintptr_t)parent >> 4;

	while (*name)
		hash = (hash ^ (uint8_t)*name++) * 0x100000001b3;
	return (size_t)(hash ^ hash >> 32) & (tree->buckets - 1);
}

static void enter(struct dir_tree *tree, struct dir_node *node)
{
	struct dir_node **wd = &tree->by_wd[wd_bucket(tree, node->wd)];
	struct dir_node **name = &tree->by_name[name_bucket(tree, node->parent, node->name)];

	node->next_by_wd = *wd;
	*wd = node;
	node->next_by_name = *name;
	*name = node;
}

static void leave_name(struct dir_tree *tree, struct dir_node *node)
{
	struct dir_node **at = &tree->by_name[name_bucket(tree, node->parent, node->name)];

	while (*at != node)
		at = &(*at)->next_by_name;
	*at = node->next_by_name;
}

static void leave_wd(struct dir_tree *tree, struct dir_node *node)
{
	struct dir_node **at = &tree->by_wd[wd_bucket(tree, node->wd)];

	while (*at != node)
		at = &(*at)->next_by_wd;
	*at = node->next_by_wd;
}

static void grow(struct dir_tree *tree)
{
	struct dir_node **old = tree->by_wd;
	size_t old_buckets = tree->buckets;

	tree->buckets = old_buckets ? old_buckets * 2 : FIRST_BUCKETS;
	free(tree->by_name);
	tree->by_wd = mem_new(tree->buckets * sizeof(struct dir_node *));
	tree->by_name = mem_new(tree->buckets * sizeof(struct dir_node *));
	for (size_t i = 0; i < old_buckets; i++) {
		while (old[i]) {
			struct dir_node *node = old[i];

			old[i] = node->next_by_wd;
			enter(tree, node);
		}
	}
	free(old);
}

static void adopt(struct dir_node *parent, struct dir_node *node)
{
	node->parent = parent;
	node->prev_sibling = NULL;
	node->next_sibling = parent ? parent->first_child : NULL;
	if (node->next_sibling)
		node->next_sibling->prev_sibling = node;
	if (parent)
		parent->first_child = node;
}

static void disown(struct dir_node *node)
{
	if (node->prev_sibling)
		node->prev_sibling->next_sibling = node->next_sibling;
	else if (node->parent)
		node->parent->first_child = node->next_sibling;
	if (node->next_sibling)
		node->next_sibling->prev_sibling = node->prev_sibling;
}

struct dir_node *dir_tree_add(struct dir_tree *tree, struct dir_node *parent, const char *name,
	int wd, const struct stat *stat)
{
	struct dir_node *node = mem_new(sizeof(*node));

	assert(!parent == !tree->root);
	if (tree->count == tree->buckets)
		grow(tree);
	*node = (struct dir_node){
		.wd = wd,
		.device = stat->st_dev,
		.inode = stat->st_ino,
		.name = mem_strdup(name),
	};
	adopt(parent, node);
	if (!parent)
		tree->root = node;
	enter(tree, node);
	tree->count++;
	return node;
}

struct dir_node *dir_tree_find(const struct dir_tree *tree, int wd)
{
	struct dir_node *node = tree->buckets ? tree->by_wd[wd_bucket(tree, wd)] : NULL;

	while (node && node->wd != wd)
		node = node->next_by_wd;
	return node;
}

struct dir_node *dir_tree_child(
	const struct dir_tree *tree, const struct dir_node *parent, const char *name)
{
	struct dir_node *node = tree->by_name[name_bucket(tree, parent, name)];

	while (node && (node->parent != parent || strcmp(node->name, name) != 0))
		node = node->next_by_name;
	return node;
}

bool dir_tree_is_within(const struct dir_node *node, const struct dir_node *ancestor)
{
	while (node && node != ancestor)
		node = node->parent;
	return node != NULL;
}

void dir_tree_move(
	struct dir_tree *tree, struct dir_node *node, struct dir_node *parent, const char *name)
{
	assert(!dir_tree_is_within(parent, node));
	leave_name(tree, node);
	leave_wd(tree, node);
	disown(node);
	free(node->name);
	node->name = mem_strdup(name);
	adopt(parent, node);
	enter(tree, node);
}

/* Removes a directory without children. */
static void remove_leaf(struct dir_tree *tree, struct dir_node *node)
{
	leave_name(tree, node);
	leave_wd(tree, node);
	disown(node);
	if (tree->root == node)
		tree->root = NULL;
	tree->count--;
	free(node->name);
	free(node);
}

void dir_tree_remove(struct dir_tree *tree, struct dir_node *node, dir_tree_fn removed, void *arg)
{
	struct dir_node *at = node;

	for (;;) {
		struct dir_node *parent = at->parent;
		bool is_last = at == node;

		if (at->first_child) {
			at = at->first_child;
			continue;
		}
		if (removed)
			removed(arg, at->wd);
		remove_leaf(tree, at);
		if (is_last)
			return;
		at = parent;
	}
}

void dir_tree_remove_unmet(struct dir_tree *tree, uint32_t round, dir_tree_fn removed, void *arg)
{
	for (size_t i = 0; i < tree->buckets; i++) {
		struct dir_node *node = tree->by_wd[i];

		while (node) {
			if (node->round == round) {
				node = node->next_by_wd;
				continue;
			}
			/* A child may be in this bucket too: starts again at its beginning. */
			dir_tree_remove(tree, node, removed, arg);
			node = tree->by_wd[i];
		}
	}
}

int dir_tree_path(const struct dir_node *node, const char *name, char path[AGENT_PATH_MAX])
{
	size_t at = AGENT_PATH_MAX - 1;

	/* From its end, then moved to the front. */
	path[at] = '\0';
	while (name) {
		size_t len = strlen(name);
		bool joint = len > 0 && path[at];

		if (len + joint > at)
			return -ENAMETOOLONG;
		if (joint)
			path[--at] = '/';
		at -= len;
		memcpy(path + at, name, len);
		name = node ? node->name : NULL;
		node = node ? node->parent : NULL;
	}
	memmove(path, path + at, AGENT_PATH_MAX - at);
	return 0;
}

void dir_tree_fini(struct dir_tree *tree)
{
	if (tree->root)
		dir_tree_remove(tree, tree->root, NULL, NULL);
	free(tree->by_wd);
	free(tree->by_name);
	*tree = (struct dir_tree){0};
}
