/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/sandbox_record.h"

#include "model/access/owner.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const char *const status_names[SANDBOX_STATUS_COUNT] = {
	"creating", "running", "paused", "stopped", "error"};

void sandbox_record_init(struct sandbox_record *record)
{
	*record = (struct sandbox_record){.env = json_object(),
		.ports = json_array(),
		.labels = json_object(),
		.network = json_object(),
		.image = json_object(),
		.dependencies = json_object(),
		.start = json_array(),
		.members = json_array()};
}

void sandbox_record_fini(struct sandbox_record *record)
{
	json_decref(record->env);
	json_decref(record->ports);
	json_decref(record->labels);
	json_decref(record->network);
	json_decref(record->image);
	json_decref(record->dependencies);
	json_decref(record->start);
	json_decref(record->members);
	record->members = NULL;
	record->env = record->ports = record->labels = record->network = record->start = NULL;
	record->image = record->dependencies = NULL;
}

/* Deep: a JSON value that two threads hold is not safe, not even to count references of. */
void sandbox_record_copy(struct sandbox_record *to, const struct sandbox_record *from)
{
	*to = *from;
	to->env = json_deep_copy(from->env);
	to->ports = json_deep_copy(from->ports);
	to->labels = json_deep_copy(from->labels);
	to->network = json_deep_copy(from->network);
	to->image = json_deep_copy(from->image);
	to->dependencies = json_deep_copy(from->dependencies);
	to->start = json_deep_copy(from->start);
	to->members = json_deep_copy(from->members);
}

static int find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return -EINVAL;
}

bool sandbox_record_is_of(const struct sandbox_record *record, const struct owner *owner)
{
	return owner_equals(owner, &record->owner);
}

const char *sandbox_status_name(enum sandbox_status status)
{
	return status_names[status];
}

int sandbox_status_parse(const char *name, enum sandbox_status *ret_status)
{
	int i = find_name(status_names, SANDBOX_STATUS_COUNT, name);

	if (i < 0)
		return i;
	*ret_status = i;
	return 0;
}

int sandbox_not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "sandbox_not_found",
		"list yours with GET /v1/sandboxes", "there is no sandbox %s", id);
}

enum exit_reason { NO, DO, NOOP };

/* The state machine. A sandbox in error can be started again, stopped and reset. */
static const unsigned char transitions[SANDBOX_VERB_COUNT][SANDBOX_STATUS_COUNT] = {
	/*                  creating running paused stopped error */
	[SANDBOX_START] = {NO, NOOP, NO, DO, DO},
	[SANDBOX_STOP] = {DO, DO, DO, NOOP, DO},
	[SANDBOX_PAUSE] = {NO, DO, NOOP, NO, NO},
	[SANDBOX_RESUME] = {NO, NOOP, DO, NO, NO},
	[SANDBOX_RESET] = {NO, DO, DO, DO, DO},
	[SANDBOX_USE] = {NO, NOOP, NO, DO, DO},
};

static const char *const verb_phrases[SANDBOX_VERB_COUNT] = {
	"started", "stopped", "paused", "resumed", "reset", "used"};

static const char *const remedies[SANDBOX_STATUS_COUNT] = {
	[SANDBOX_PAUSED] = "resume it first: POST /v1/sandboxes/{id}/resume",
	[SANDBOX_STOPPED] = "start it first: POST /v1/sandboxes/{id}/start",
	[SANDBOX_ERROR] = "start it first: POST /v1/sandboxes/{id}/start",
};

int sandbox_verb_check(const struct sandbox_record *record, enum sandbox_verb verb, struct err *err)
{
	switch (transitions[verb][record->status]) {
	case DO:
		return 0;
	case NOOP:
		return 1;
	default:
		/* That passes by itself. */
		if (record->status == SANDBOX_CREATING)
			return err_explain(err, ERR_UNAVAILABLE, "sandbox_creating",
				"wait until it is running: GET /v1/sandboxes/{id}",
				"sandbox %s is being created and cannot be %s yet", record->id,
				verb_phrases[verb]);
		return err_explain(err, ERR_CONFLICT, "wrong_state", remedies[record->status],
			"sandbox %s is %s and cannot be %s now", record->id,
			status_names[record->status], verb_phrases[verb]);
	}
}

bool model_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	if (len < 1 || len >= MODEL_NAME_MAX || !isalnum((unsigned char)name[0]))
		return false;
	for (const char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	}
	return true;
}

bool sandbox_name_is_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return islower((unsigned char)name[0]) && len < SANDBOX_NAME_MAX && !name[len] &&
	       !id_is_valid(name);
}
