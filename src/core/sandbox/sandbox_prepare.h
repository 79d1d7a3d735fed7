/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox of an image needs before its first command: who runs commands, the directories that the image
 * promises, and a workspace that this user owns, seeded from the skeleton of the template if it is new. Its agent
 * does it, inside; the daemon only says what, and keeps who the user is in the record: `uid`, `gid`, `groups` and `home`
 * of its image, which stand there until another version of the template, or an emptied system, takes them away.
 */
#pragma once

#include "core/engine/sandbox_state.h"

/*
 * For one whose agent was just met and whose row does not say yet that it runs. On failure nobody may use it: one
 * that is being created is undone, so a workspace that was seeded by half is never seen. life is held.
 */
int sandbox_prepare(struct sandbox *sandbox, struct err *err) must_check;

/* From now on the image of a record has to be prepared again. Changes it. */
void sandbox_prepare_again(json_t *image);
