/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of requests that carried an Idempotency-Key: enough to answer them again. A key is its
 * owner's. It is kept for a day, and no more than a bounded number of each owner.
 */
#pragma once

#include "store/store.h"

#define IDEMPOTENCY_KEY_MAX   255
#define IDEMPOTENCY_KEPT_MS   (24 * 3600 * 1000ll)
#define IDEMPOTENCY_KEPT_MAX  1000
#define IDEMPOTENCY_PRINT_LEN 32

struct idempotency_record {
	uint8_t print[IDEMPOTENCY_PRINT_LEN]; /* a hash of what was asked */
	char object[ID_LEN + 1];	      /* the id set aside for what is made */
	int64_t created_at_ms;
	char *answer; /* NULL if there is none yet; the caller frees it */
};

/*
 * Notes a key with the print and object of *record. If it is known already, gives what is known of it
 * instead, and returns 1.
 */
int store_idempotency_begin(struct store *store, const struct owner *owner, const char *key,
	struct idempotency_record *record, struct err *err) must_check;

/* Keeps the answer. */
int store_idempotency_finish(struct store *store, const struct owner *owner, const char *key,
	const char *answer, struct err *err) must_check;

/* The request failed: another may try under the same key. */
int store_idempotency_forget(struct store *store, const struct owner *owner, const char *key,
	struct err *err) must_check;
