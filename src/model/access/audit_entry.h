/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of the audit log: who did what to which object, from where, and how it ended.
 *
 * Entries form a chain: the hash of each is made over the hash of the one before and over every member
 * of its own, so none can be changed, left out or moved without all hashes after it being wrong.
 */
#pragma once

#include "model/sandbox/sandbox_record.h"

#include <stdint.h>

#define AUDIT_HASH_LEN	 32
#define AUDIT_DETAIL_MAX 512

struct audit_entry {
	int64_t sequence;   /* 1, 2, 3, ... without a gap */
	int64_t at_ms;	    /* wall clock */
	struct owner owner; /* empty: it is not known who asked, or the daemon acted by itself */
	char token_id[32];
	char action[48]; /* "sandbox.create" */
	char object[64]; /* "<sandbox>", "<sandbox>/p3" */
	int status;	 /* of the answer; 0: there was no request */
	char code[40];	 /* of the error; empty for a success */
	char peer[56];
	char request_id[68];
	char detail[AUDIT_DETAIL_MAX];
};

/* A place in the chain: an entry and its hash. Sequence 0 is where it begins, with a hash of zeros. */
struct audit_mark {
	int64_t sequence;
	uint8_t hash[AUDIT_HASH_LEN];
};

/* "<sequence>:<hash in hex>", and back; -EINVAL if it is none. */
#define AUDIT_MARK_TEXT (20 + 1 + 2 * AUDIT_HASH_LEN + 1)
void audit_mark_format(const struct audit_mark *mark, char text[AUDIT_MARK_TEXT]);
int audit_mark_parse(const char *text, struct audit_mark *ret_mark) must_check;

/* The hash of an entry that follows one with the hash `before`. */
void audit_entry_hash(const struct audit_entry *entry, const uint8_t before[AUDIT_HASH_LEN],
	uint8_t ret_hash[AUDIT_HASH_LEN]);
