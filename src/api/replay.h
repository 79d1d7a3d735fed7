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

struct replay;
struct replays;

/* Those under way; one for the daemon. */
struct replays *replays_new(void);
void replays_free(struct replays *replays);

/*
 * 0: the request is to be carried out, with the given id, and ended with replay_end. Without a key
 * *ret_replay is NULL, and the id is left as it is. 1: it is answered, or will be when the first of
 * its key is. ERR_UNPROCESSABLE if the key was used for another request.
 */
int replay_begin(struct api *api, struct request *req, char id[ID_LEN + 1],
	struct replay **ret_replay, struct err *err) must_check;

/* When a try that was cut short began, of which something may be there; 0 if this is the first. */
int64_t replay_resumed_ms(const struct replay *replay);

/* What was made, with 201; or NULL and why not. Answers all who wait. A replay of NULL is fine. */
void replay_end(struct replay *replay, const json_t *made, const struct err *err);
