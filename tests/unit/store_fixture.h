/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a temporary directory, and rows to put into it. */
#pragma once

#include "store/store.h"

extern const struct owner alice, bob, other_alice;

struct fixture {
	char dir[64];
	char path[96];
	struct store *store;
};

int setup_empty(void **state); /* only the directory */
int setup(void **state);       /* opened */
int teardown(void **state);
void open_store(struct fixture *fixture);
void reopen(struct fixture *fixture);

/* An id with that number; eight of them live at a time. */
const char *id_of(unsigned n);
struct sandbox_record draft(const struct owner *owner, const char *id, const char *project);
int insert(struct store *store, const struct owner *owner, const char *id, const char *project,
	uint32_t *ret_slot, struct err *err);
uint32_t must_insert(
	struct store *store, const struct owner *owner, const char *id, const char *project);
bool exists(struct store *store, const struct owner *owner, const char *id);

/* Runs SQL on the file itself. */
void execute(const char *path, const char *sql);
