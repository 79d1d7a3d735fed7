/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates that may be sent again. A client that does not know whether its request arrived repeats it
 * with the same Idempotency-Key, and gets the answer of the first: also when both are under way at the
 * same time, and when the daemon died in between. The id of what is made is set aside before it is
 * made, so a second try finds what the first has done.
 *
 * Only success is remembered: after an error the same key may be tried again.
 */
#pragma once

#include "api/api.h"

struct idempotency;
struct idempotency_keys;

/* Those under way; one for the daemon. */
struct idempotency_keys *idempotency_keys_new(void);
void idempotency_keys_free(struct idempotency_keys *idempotency_keys);

/*
 * 0: the request is to be carried out, with the given id, and ended with idempotency_end. Without a key
 * *ret_replay is NULL, and the id is left as it is. 1: it is answered, or will be when the first of
 * its key is. ERR_UNPROCESSABLE if the key was used for another request.
 */
int idempotency_begin(struct api *api, struct request *req, char id[ID_LEN + 1],
	struct idempotency **ret_replay, struct err *err) must_check;

/* When a try that was cut short began, of which something may be there; 0 if this is the first. */
int64_t idempotency_resumed_ms(const struct idempotency *idempotency);

/* What a new object is told of with: 201, or 202 if it is yet to be made. */
int idempotency_status(const json_t *made);

/* What was made; or NULL and why not. Answers all who wait. A replay of NULL is fine. */
void idempotency_end(struct idempotency *idempotency, const json_t *made, const struct err *err);
