/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a sandbox (model/sandbox/member_spec.h) through its life.
 *
 * A member is a sandbox of its own in the engine: a row with the id of its sandbox as parent, a handle, an agent, start
 * commands. So everything that can be done in a sandbox can be done in a member, by the same code. But no list shows
 * it, no client reaches it by its id, and its life is that of its sandbox, the primary: the verbs of that take all
 * members along. Its files lie on the disk of the primary, and are cleaned with it.
 *
 * All of them run as soon as the primary does; what waits for others (depends_on) are their start commands. The
 * watch (member_watch.h) asks after their health, lets those go on who wait, and starts again who died.
 *
 * The life lock of a primary is taken before that of a member. A member's row changes under both, but for its end,
 * which the reaper writes under its own alone.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "model/sandbox/member_spec.h"
#include "model/sandbox/sandbox_spec.h"

/* --- making them --- */

/*
 * Takes the drafts of members out of the draft of their sandbox, which then has ids for them; a new reference. Once
 * the row of the sandbox is there, member_add makes theirs. life is held.
 */
json_t *member_take_drafts(struct sandbox_record *record);
int member_add(struct sandbox *primary, const json_t *drafts, struct err *err) must_check;

/*
 * Gives a sandbox that is there the members of a spec whose roles it has not: 0, and they start if it runs; 1 if a
 * template is not there yet, but will be when the job has succeeded.
 */
int member_join(struct sandbox *primary, const struct sandbox_spec *spec, char ret_job[ID_LEN + 1],
	struct err *err) must_check;

/* Its members as drafts, of which others like them can be made; a new array, empty if it has none. life is held. */
json_t *member_describe(struct sandbox *primary);

/* --- the life of all members of a sandbox, whose life lock is held; nothing happens where there are none --- */

/* Starts those that do not run. Of a new sandbox all must start, else this fails. */
int member_start_all(struct sandbox *primary, bool is_new, struct err *err) must_check;

/* Ends them, those first on whom nobody depends, and writes that down. */
void member_end_all(struct sandbox *primary, bool gently, const struct termination *how);

int member_freeze_all(struct sandbox *primary, bool freeze, struct err *err) must_check;

/* Their systems were emptied: what is prepared in them is made anew, from the newest version of each template. */
void member_renew_all(struct sandbox *primary);

/* Ends them and removes their rows and logs. */
int member_remove_all(struct sandbox *primary, struct err *err) must_check;

/*
 * The same in two steps, for a sandbox that may have to be there with all of them if the daemon dies between: what runs
 * of them ends; and when the row of their sandbox is gone, theirs go, if need be with the next start.
 */
int member_kill_all(struct sandbox *primary, struct err *err) must_check;
void member_forget_all(struct sandbox *primary);

/* --- one of them --- */

/* The member of a role, by name; the sandbox itself for `primary`. */
int member_get(struct sandbox *primary, const char *role, struct sandbox **ret_member,
	struct err *err) must_check;

/* The ids of the members of a sandbox: how many. */
size_t member_list_ids(struct sandbox *primary, char ids[static MEMBERS_MAX][ID_LEN + 1]);

/* The sandbox that a member belongs to; a reference, or NULL if it is gone. Of the sandbox itself: itself. */
struct sandbox *member_primary(struct sandbox *member);

/* Starts a member that does not run; both life locks are held. */
int member_start(struct sandbox *member, struct err *err) must_check;

/* The variable of a start command that says where it serves, if PORT does not. */
#define MEMBER_PART_PORT "SANDLOT_PORT"

struct member_view {
	char id[ID_LEN + 1];
	char role[16];
	char template_name[SANDBOX_TEMPLATE_MAX];
	char runtime_type[MODEL_NAME_MAX];
	uint16_t port;
	const char *status; /* waiting running restarting exited paused stopped error creating */
	const char *health; /* none starting healthy unhealthy */
	char error_message[320];
};

/*
 * Adds to `count` views those of the parts of an app that run in the sandbox itself: start commands that are named after a
 * role which no member has, as launches make them. The sandbox comes before them, if it is not there. How many there are.
 */
size_t member_read_parts(struct engine *engine, const struct sandbox_record *record,
	struct member_view views[static MEMBERS_MAX], size_t count);

/* Reads those of a sandbox, itself among them; how many there are: none if it has no members. */
size_t member_read_all(struct engine *engine, const struct sandbox_record *record,
	struct member_view ret_views[static MEMBERS_MAX]);
