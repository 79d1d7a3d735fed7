/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a sandbox of a pool is ready to be given away: its ready check has passed, and its members are healthy. How
 * it fared then is marked, because servers end and databases fall ill while they wait, too: it is compared with what is
 * true later, which costs nothing, and its ready check is asked again now and then.
 */
#pragma once

#include "core/process/ready_check.h"
#include "core/process/start_command.h"

struct pool_mark {
	struct start_command_sum own, of_members;
};

/* How far one is that was not ready yet, and how it fares now. */
enum ready_state pool_ready_state(struct sandbox *sandbox, struct pool_mark *ret_mark);

enum pool_verdict {
	POOL_WELL,     /* it may be given away */
	POOL_DOUBTFUL, /* not now; its ready check will tell */
	POOL_ILL,      /* it is of no use any more */
};

/* Compares one that was ready with what was marked, which becomes what is true now. *ret_is_to_be_asked: something
 * ended that may have been all there was to do, and its ready check is to be asked again. */
enum pool_verdict pool_ready_judge(
	struct sandbox *sandbox, struct pool_mark *mark, bool *ret_is_to_be_asked);
