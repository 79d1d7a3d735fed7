/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: it only grows, and whoever gets around that in the file is found out. */
#include "base/clock.h"
#include "store/access/store_audit.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct audit_entry entry_of(
	const struct owner *owner, const char *action, const char *object)
{
	struct audit_entry entry = {.owner = *owner, .at_ms = clock_wall_ms(), .status = 200};

	snprintf(entry.action, sizeof(entry.action), "%s", action);
	snprintf(entry.object, sizeof(entry.object), "%s", object);
	snprintf(entry.detail, sizeof(entry.detail), "a detail");
	return entry;
}

static void append(struct store *store, struct audit_entry entry)
{
	const struct audit_entry *entries[] = {&entry};
	struct err err = {0};

	entry.sequence = store_audit_head(store).sequence + 1;
	if (store_audit_append(store, entries, 1, &err) < 0)
		fail_msg("%s", err.message);
}

static void append_many(struct store *store, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		append(store, entry_of(&alice, "sandbox.create", id_of(i)));
}

static struct audit_report verify(struct fixture *fixture, const struct audit_mark *known)
{
	struct audit_report report;
	struct err err = {0};

	if (store_audit_verify(fixture->store, known, &report, &err) < 0)
		fail_msg("%s", err.message);
	return report;
}

static void assert_flaw(struct audit_report report, enum audit_flaw flaw, int64_t bad)
{
	assert_int_equal(report.flaw, flaw);
	assert_int_equal(report.bad, bad);
}

/* As one who knows about the triggers. */
static void tamper(struct fixture *fixture, const char *sql)
{
	execute(fixture->path, "DROP TRIGGER IF EXISTS audit_is_not_changed;"
			       "DROP TRIGGER IF EXISTS audit_is_not_cut;"
			       "DROP TRIGGER IF EXISTS audit_grows_at_its_end;");
	execute(fixture->path, sql);
}

static void assert_refused(struct fixture *fixture, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		fail_msg("not refused: %s", sql);
	sqlite3_close(db);
}

static void an_empty_log_is_whole(void **state)
{
	struct audit_report report = verify(*state, NULL);

	assert_flaw(report, AUDIT_WHOLE, 0);
	assert_int_equal(report.count, 0);
}

static void a_log_that_nobody_touched_is_whole_also_after_a_restart(void **state)
{
	struct fixture *fixture = *state;
	struct audit_report report;

	append_many(fixture->store, 5);
	reopen(fixture);
	append_many(fixture->store, 5);
	report = verify(fixture, NULL);
	assert_flaw(report, AUDIT_WHOLE, 0);
	assert_int_equal(report.count, 10);
	assert_int_equal(report.head.sequence, 10);
}

static void sql_that_changes_the_past_is_refused(void **state)
{
	struct fixture *fixture = *state;

	append_many(fixture->store, 3);
	assert_refused(fixture, "UPDATE audit SET status = 0 WHERE sequence = 2");
	assert_refused(fixture, "DELETE FROM audit WHERE sequence = 3");
	assert_refused(fixture, "DELETE FROM audit");
	assert_refused(fixture, "INSERT OR REPLACE INTO audit SELECT 2, at, organization, 'eve', "
				"token, action, object, status, code, peer, request, detail, hash "
				"FROM audit WHERE sequence = 2");
	assert_refused(fixture, "UPDATE audit_anchor SET sequence = 2, hash = zeroblob(32)");
	assert_refused(fixture, "DELETE FROM audit_anchor");
	assert_flaw(verify(fixture, NULL), AUDIT_WHOLE, 0);
}

static void a_change_of_any_column_is_found(void **state)
{
	static const char *const changes[] = {"at = at + 1", "organization = 'x'", "user = 'x'",
		"token = 'x'", "action = 'x'", "object = 'x'", "status = 404", "code = 'x'",
		"peer = 'x'", "request = 'x'", "detail = 'x'", "detail = detail || char(0) || 'x'",
		"hash = zeroblob(32)"};
	struct fixture *fixture = *state;

	append_many(fixture->store, 5);
	for (size_t i = 0; i < array_len(changes); i++) {
		char *sql = mem_printf("CREATE TABLE saved AS SELECT * FROM audit;"
				       "UPDATE audit SET %s WHERE sequence = 3",
			changes[i]);

		tamper(fixture, sql);
		free(sql);
		assert_flaw(verify(fixture, NULL), AUDIT_CHANGED, 3);
		execute(fixture->path, "DELETE FROM audit; INSERT INTO audit SELECT * FROM saved;"
				       "DROP TABLE saved");
		assert_flaw(verify(fixture, NULL), AUDIT_WHOLE, 0);
	}
}

static void a_text_that_grew_beyond_its_bound_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct audit_entry entry = entry_of(&alice, "file.write", id_of(1));

	memset(entry.detail, 'a', sizeof(entry.detail) - 1);
	append(fixture->store, entry);
	tamper(fixture, "UPDATE audit SET detail = detail || 'more'");
	assert_flaw(verify(fixture, NULL), AUDIT_CHANGED, 1);
}

static void an_entry_taken_out_of_the_middle_is_found(void **state)
{
	struct fixture *fixture = *state;

	append_many(fixture->store, 5);
	tamper(fixture, "DELETE FROM audit WHERE sequence = 3");
	assert_flaw(verify(fixture, NULL), AUDIT_MISSING, 3);
	/* And if the rest moves up to close the gap. */
	execute(fixture->path, "UPDATE audit SET sequence = sequence - 1 WHERE sequence > 3");
	assert_flaw(verify(fixture, NULL), AUDIT_CHANGED, 3);
}

static void entries_that_changed_places_are_found(void **state)
{
	struct fixture *fixture = *state;

	append_many(fixture->store, 5);
	tamper(fixture, "UPDATE audit SET sequence = 100 WHERE sequence = 2;"
			"UPDATE audit SET sequence = 2 WHERE sequence = 3;"
			"UPDATE audit SET sequence = 3 WHERE sequence = 100");
	assert_flaw(verify(fixture, NULL), AUDIT_CHANGED, 2);
}

static void an_end_that_was_cut_off_is_found(void **state)
{
	struct fixture *fixture = *state;

	append_many(fixture->store, 5);
	tamper(fixture, "DELETE FROM audit WHERE sequence > 3");
	assert_flaw(verify(fixture, NULL), AUDIT_CUT, 4);
	reopen(fixture);
	assert_flaw(verify(fixture, NULL), AUDIT_CUT, 4);
	/* Also when the log has gone on since. */
	append_many(fixture->store, 2);
	assert_flaw(verify(fixture, NULL), AUDIT_MISSING, 4);
}

static void a_log_that_was_emptied_is_found(void **state)
{
	struct fixture *fixture = *state;

	append_many(fixture->store, 5);
	tamper(fixture, "DELETE FROM audit");
	reopen(fixture);
	assert_flaw(verify(fixture, NULL), AUDIT_CUT, 1);
}

static void a_clever_cut_is_found_by_who_noted_the_head(void **state)
{
	struct fixture *fixture = *state;
	struct audit_mark noted, parsed;
	char text[AUDIT_MARK_TEXT];

	append_many(fixture->store, 5);
	noted = store_audit_head(fixture->store);
	audit_mark_format(&noted, text);
	assert_int_equal(audit_mark_parse(text, &parsed), 0);
	tamper(fixture, "DELETE FROM audit WHERE sequence > 3;"
			"UPDATE sqlite_sequence SET seq = 3 WHERE name = 'audit'");
	assert_flaw(verify(fixture, NULL), AUDIT_CUT, 4); /* this process remembers */
	reopen(fixture);
	assert_flaw(verify(fixture, NULL), AUDIT_WHOLE, 0); /* what cannot be found without it */
	assert_flaw(verify(fixture, &parsed), AUDIT_CUT, 4);
	append_many(fixture->store, 4);
	assert_flaw(verify(fixture, &parsed), AUDIT_REWRITTEN, 5);
}

static void old_entries_are_dropped_and_the_rest_still_holds(void **state)
{
	struct fixture *fixture = *state;
	struct audit_mark noted;
	struct audit_report report;
	struct err err;

	append_many(fixture->store, 90);
	noted = store_audit_head(fixture->store);
	append_many(fixture->store, 10);
	assert_int_equal(store_audit_prune(fixture->store, 100, &err), 0);
	assert_int_equal(verify(fixture, NULL).count, 100);
	assert_int_equal(store_audit_prune(fixture->store, 40, &err), 0);
	report = verify(fixture, &noted);
	assert_flaw(report, AUDIT_WHOLE, 0);
	assert_int_equal(report.count, 40);
	assert_int_equal(report.anchor.sequence, 60);
	reopen(fixture);
	append_many(fixture->store, 1);
	assert_flaw(verify(fixture, &noted), AUDIT_WHOLE, 0);
	assert_refused(fixture, "DELETE FROM audit WHERE sequence = 61");
	tamper(fixture, "DELETE FROM audit WHERE sequence = 61");
	assert_flaw(verify(fixture, NULL), AUDIT_MISSING, 61);
}

/* --- reading --- */

static void note_sequence(const struct audit_entry *entry, const uint8_t *hash, void *arg)
{
	char *text = arg;
	size_t len = strlen(text);

	(void)hash;
	snprintf(text + len, 64 - len, "%lld ", (long long)entry->sequence);
}

static const char *listed(struct fixture *fixture, struct store_audit_filter filter)
{
	static char text[64];
	struct err err = {0};

	text[0] = '\0';
	if (!filter.limit)
		filter.limit = 10;
	if (store_audit_list(fixture->store, &filter, note_sequence, text, &err) < 0)
		fail_msg("%s", err.message);
	return text;
}

#define LISTED(fixture, ...) listed(fixture, (struct store_audit_filter){__VA_ARGS__})

static void entries_are_listed_newest_first_and_filtered(void **state)
{
	struct fixture *fixture = *state;

	append(fixture->store, entry_of(&alice, "sandbox.create", "one"));
	append(fixture->store, entry_of(&bob, "sandbox.create", "two"));
	append(fixture->store, entry_of(&other_alice, "exec.run", "three"));
	append(fixture->store, entry_of(&alice, "exec.run", "one"));
	append(fixture->store, entry_of(&alice, "process.kill", "one/p1"));
	append(fixture->store, entry_of(&alice, "exec.run", "one0"));
	assert_string_equal(LISTED(fixture, .limit = 10), "6 5 4 3 2 1 ");
	assert_string_equal(LISTED(fixture, .organization = "org"), "6 5 4 2 1 ");
	assert_string_equal(LISTED(fixture, .organization = "other"), "3 ");
	assert_string_equal(LISTED(fixture, .organization = "nobody"), "");
	assert_string_equal(LISTED(fixture, .organization = "org", .user = "bob"), "2 ");
	assert_string_equal(LISTED(fixture, .action = "exec.run"), "6 4 3 ");
	assert_string_equal(LISTED(fixture, .object = "one"), "5 4 1 ");
	assert_string_equal(LISTED(fixture, .limit = 2), "6 5 ");
	assert_string_equal(LISTED(fixture, .limit = 2, .before = 5), "4 3 ");
	assert_string_equal(LISTED(fixture, .object = "' OR 1=1 --"), "");
}

/* --- marks --- */

static void a_mark_is_read_strictly(void **state)
{
	static const char hex[] =
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	struct audit_mark mark;
	char text[128];

	(void)state;
	snprintf(text, sizeof(text), "7:%s", hex);
	assert_int_equal(audit_mark_parse(text, &mark), 0);
	assert_int_equal(mark.sequence, 7);
	assert_int_equal(mark.hash[1], 0x11);
	assert_int_equal(audit_mark_parse("", &mark), -EINVAL);
	assert_int_equal(audit_mark_parse("7:", &mark), -EINVAL);
	assert_int_equal(audit_mark_parse(hex, &mark), -EINVAL);
	snprintf(text, sizeof(text), "-7:%s", hex);
	assert_int_equal(audit_mark_parse(text, &mark), -EINVAL);
	snprintf(text, sizeof(text), "7:%s0", hex);
	assert_int_equal(audit_mark_parse(text, &mark), -EINVAL);
	snprintf(text, sizeof(text), "7:%.63sx", hex);
	assert_int_equal(audit_mark_parse(text, &mark), -EINVAL);
	snprintf(text, sizeof(text), "99999999999999999999999999:%s", hex);
	assert_int_equal(audit_mark_parse(text, &mark), -EINVAL);
}

static void texts_cannot_be_moved_between_members(void **state)
{
	struct audit_entry a = {.sequence = 1, .object = "ab", .code = "c"};
	struct audit_entry b = {.sequence = 1, .object = "a", .code = "bc"};
	uint8_t before[AUDIT_HASH_LEN] = {0}, x[AUDIT_HASH_LEN], y[AUDIT_HASH_LEN];

	(void)state;
	audit_entry_hash(&a, before, x);
	audit_entry_hash(&b, before, y);
	assert_memory_not_equal(x, y, AUDIT_HASH_LEN);
	before[0] = 1;
	audit_entry_hash(&a, before, y);
	assert_memory_not_equal(x, y, AUDIT_HASH_LEN);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_STORE(an_empty_log_is_whole),
		WITH_STORE(a_log_that_nobody_touched_is_whole_also_after_a_restart),
		WITH_STORE(sql_that_changes_the_past_is_refused),
		WITH_STORE(a_change_of_any_column_is_found),
		WITH_STORE(a_text_that_grew_beyond_its_bound_is_found),
		WITH_STORE(an_entry_taken_out_of_the_middle_is_found),
		WITH_STORE(entries_that_changed_places_are_found),
		WITH_STORE(an_end_that_was_cut_off_is_found),
		WITH_STORE(a_log_that_was_emptied_is_found),
		WITH_STORE(a_clever_cut_is_found_by_who_noted_the_head),
		WITH_STORE(old_entries_are_dropped_and_the_rest_still_holds),
		WITH_STORE(entries_are_listed_newest_first_and_filtered),
		cmocka_unit_test(a_mark_is_read_strictly),
		cmocka_unit_test(texts_cannot_be_moved_between_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
