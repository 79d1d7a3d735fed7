/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel kills the keeper last when memory runs out (daemon/privileged_setup.c sets that), but
 * not its sandboxes.
 */
#pragma once

/*
 * In a child that becomes a sandbox, while it is privileged: gives up its copy of the keeper's
 * protection, for good. Returns a descriptor of its own oom_score_adj, which it could not open
 * after exec; -1 if there is none.
 */
int oom_score_open_own(void);
