/* SPDX-License-Identifier: Apache-2.0 */
#include "store/template/store_template.h"

#include "base/format.h"
#include "model/access/owner.h"
#include "store/store_private.h"

#include <stdio.h>
#include <string.h>

#define USERS_NAMED    5
#define USERS_TEXT_MAX 220

static void read_record(struct store *store, struct db_stmt *stmt, struct template_record *record)
{
	char state[16];

	*record = (struct template_record){.version = db_column_int(stmt, 3),
		.image = store_read_json(stmt, 6),
		.bytes = (uint64_t)db_column_int(stmt, 7),
		.created_at_ms = db_column_int(stmt, 8),
		.used_at_ms = db_column_int(stmt, 9),
		.source = store_read_json(stmt, 10),
		.options = store_read_json(stmt, 11)};
	store_read_text(stmt, 0, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 1, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 2, record->name, sizeof(record->name));
	store_read_text(stmt, 4, record->reference, sizeof(record->reference));
	store_read_text(stmt, 5, record->digest, sizeof(record->digest));
	store_read_text(stmt, 12, record->job, sizeof(record->job));
	store_read_text(stmt, 13, state, sizeof(state));
	store_read_text(stmt, 14, record->error, sizeof(record->error));
	record->disk_bytes = store_layer_bytes(store, record->image);
	record->status = template_status_of(record->version, state);
	if (record->status == TEMPLATE_ERROR && !record->error[0])
		snprintf(record->error, sizeof(record->error), "%s",
			state[0] ? "its build was cancelled" : "it was never built");
}

static int not_found(const char *name, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "template_not_found",
		"list the templates that there are", "there is no template %.120s", name);
}

/* Steps a statement that gives one row at most: 1 if there is one. */
static int step_once(struct store *store, struct db_stmt *stmt, const char *what, struct err *err)
{
	int code = db_step(stmt);

	return code == DB_ROW ? 1 : code == DB_DONE ? 0 : store_fail(store, what, err);
}

int store_template_find(struct store *store, const struct owner *owner, const char *name,
	struct template_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TEMPLATE_FIND);
	db_bind_text(stmt, 1, name);
	store_bind_owner(stmt, owner);
	r = step_once(store, stmt, "find a template", err);
	if (r > 0)
		read_record(store, stmt, ret_record);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? 0 : r < 0 ? r : not_found(name, err);
}

/* With the lock held. */
static int put(struct store *store, const struct template_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_TEMPLATE_PUT);
	int r;

	db_bind_text(stmt, 1, record->owner.organization);
	db_bind_text(stmt, 2, record->owner.user);
	db_bind_text(stmt, 3, record->name);
	db_bind_int(stmt, 4, record->version);
	db_bind_text(stmt, 5, record->reference);
	db_bind_text(stmt, 6, record->digest);
	store_bind_json(stmt, 7, record->image);
	db_bind_int(stmt, 8, (int64_t)record->bytes);
	db_bind_int(stmt, 9, record->created_at_ms);
	db_bind_int(stmt, 10, record->used_at_ms);
	store_bind_json(stmt, 11, record->source);
	store_bind_json(stmt, 12, record->options);
	db_bind_text(stmt, 13, record->job);
	db_bind_int(stmt, 14, STORE_TEMPLATES_MAX);
	r = db_run(stmt, "keep a template", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(err, ERR_RATE, "too_many_templates", "remove one that is not used",
			"there are %d templates already", STORE_TEMPLATES_MAX);
	return r;
}

/* The owner's own row, or a fresh one: 1 if it was there. With the lock held. */
static int read_own(struct store *store, const struct owner *owner, const char *name,
	struct template_record *ret_record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_TEMPLATE_OWN);
	int r;

	db_bind_text(stmt, 1, owner->organization);
	db_bind_text(stmt, 2, owner->user);
	db_bind_text(stmt, 3, name);
	r = step_once(store, stmt, "find a template", err);
	if (r > 0) {
		read_record(store, stmt, ret_record);
	} else if (r == 0) {
		template_record_init(ret_record);
		ret_record->owner = *owner;
		snprintf(ret_record->name, sizeof(ret_record->name), "%s", name);
	}
	db_reset(stmt);
	return r;
}

/* Whether two readings of a row are the same in all that a change may be decided by. */
static bool is_same(const struct template_record *one, const struct template_record *other)
{
	return one->version == other->version && one->status == other->status &&
	       one->created_at_ms == other->created_at_ms && strcmp(one->job, other->job) == 0 &&
	       json_equal(one->image, other->image) && json_equal(one->source, other->source) &&
	       json_equal(one->options, other->options);
}

/*
 * Writes what `before` (a row if it was there) was made into: 0, or 1 if the row is another one by now. A use that was
 * noted meanwhile stays.
 */
static int put_changed(struct store *store, const struct template_record *before, bool was_there,
	struct template_record *changed, struct err *err)
{
	struct template_record now;
	int r;

	pthread_mutex_lock(&store->lock);
	r = read_own(store, &changed->owner, changed->name, &now, err);
	if (r >= 0) {
		bool is_changed = (r > 0) != was_there || !is_same(before, &now);

		if (now.used_at_ms > changed->used_at_ms)
			changed->used_at_ms = now.used_at_ms;
		template_record_fini(&now);
		r = is_changed ? 1 : store_layer_check_stack(store, changed->image, err);
		if (r == 0)
			r = put(store, changed, err);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_template_change(struct store *store, const struct owner *owner, const char *name,
	int (*change)(struct template_record *record, bool is_new, void *arg, struct err *err),
	void *arg, struct err *err)
{
	int r;

	do {
		struct template_record before, record;
		bool was_there;

		pthread_mutex_lock(&store->lock);
		r = read_own(store, owner, name, &before, err);
		was_there = r > 0;
		if (r >= 0) {
			r = read_own(store, owner, name, &record, err);
			if (r < 0)
				template_record_fini(&before);
		}
		pthread_mutex_unlock(&store->lock);
		if (r < 0)
			return r;
		r = change(&record, !was_there, arg, err);
		if (r == 0)
			r = put_changed(store, &before, was_there, &record, err);
		template_record_fini(&record);
		template_record_fini(&before);
	} while (r > 0);
	return r;
}

/* Copies the rows after a name: how many. */
static int read_page(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, struct template_record *page, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TEMPLATE_LIST);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, limit);
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_record(store, stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list templates", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		template_record_fini(&page[i]);
	return r;
}

int store_template_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, bool (*each)(const struct template_record *record, void *arg), void *arg,
	struct err *err)
{
	auto_free struct template_record *page = mem_new(STORE_PAGE * sizeof(*page));
	auto_free char *last = mem_strdup(after);
	unsigned left = limit, asked;
	bool wants_more = true;
	int count;

	do {
		asked = store_page(left);
		count = read_page(store, owner, last, asked, page, err);
		for (int i = 0; i < count && wants_more; i++)
			wants_more = each(&page[i], arg);
		if (count > 0) {
			free(last);
			last = mem_strdup(page[count - 1].name);
			left -= (unsigned)count;
		}
		for (int i = 0; i < count; i++)
			template_record_fini(&page[i]);
	} while (wants_more && count > 0 && (unsigned)count == asked && left > 0);
	return count < 0 ? count : 0;
}

int store_template_pools(struct store *store,
	bool (*each)(const struct template_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct template_record *rows = mem_new(STORE_PAGE * sizeof(*rows));
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TEMPLATE_POOLS);
	db_bind_int(stmt, 1, STORE_PAGE);
	while ((code = db_step(stmt)) == DB_ROW)
		read_record(store, stmt, &rows[count++]);
	r = code == DB_DONE ? 0 : store_fail(store, "look for templates with pools", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; i < count; i++) {
		if (r == 0)
			each(&rows[i], arg);
		template_record_fini(&rows[i]);
	}
	return r;
}

/* Which sandboxes were made from the template, of whomever if it is everybody's: how many of them `text` names, and that there are more. With the lock
 * held. */
static int name_users(struct store *store, const struct owner *owner, const char *name,
	char text[USERS_TEXT_MAX], struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_TEMPLATE_USER);
	char id[ID_LEN + 1], given[SANDBOX_NAME_MAX];
	size_t len = 0;
	int code, count = 0;

	db_bind_text(stmt, 1, name);
	db_bind_int(stmt, 2, USERS_NAMED + 1);
	store_bind_owner(stmt, owner_equals(owner, &owner_everybody) ? NULL : owner);
	text[0] = '\0';
	while ((code = db_step(stmt)) == DB_ROW) {
		store_read_text(stmt, 0, id, sizeof(id));
		store_read_text(stmt, 1, given, sizeof(given));
		if (count == USERS_NAMED)
			len = format_append(text, USERS_TEXT_MAX, len, " and more");
		else
			len = format_append(text, USERS_TEXT_MAX, len, "%s%s",
				count > 0 ? ", " : "", given[0] ? given : id);
		count++;
	}
	db_reset(stmt);
	return code == DB_DONE ? count : store_fail(store, "look who uses a template", err);
}

int store_template_delete(
	struct store *store, const struct owner *owner, const char *name, struct err *err)
{
	char users[USERS_TEXT_MAX];
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	r = name_users(store, owner, name, users, err);
	if (r > 0)
		r = err_explain(err, ERR_CONFLICT, "template_in_use",
			"delete these sandboxes first", "template %.80s is used by %s", name,
			users);
	if (r == 0) {
		stmt = store_use(store, Q_TEMPLATE_DELETE);
		db_bind_text(stmt, 1, name);
		store_bind_owner(stmt, owner);
		r = db_run(stmt, "remove a template", err);
		if (r == 0 && db_changes(store->db) == 0)
			r = not_found(name, err);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_template_touch(
	struct store *store, const struct template_record *record, int64_t at_ms, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TEMPLATE_TOUCH);
	db_bind_text(stmt, 1, record->name);
	db_bind_int(stmt, 2, at_ms);
	store_bind_owner(stmt, &record->owner);
	r = db_run(stmt, "note the use of a template", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
