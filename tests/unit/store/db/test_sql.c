/* SPDX-License-Identifier: Apache-2.0 */
/* The statements that all databases share say nothing that only SQLite understands. */
#include "base/mem.h"
#include "store/db/sql.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#define DEPTH_MAX 16

/* Words that PostgreSQL or MariaDB do not know, or take for another thing: `user` and `key` need quotes. */
static const char *const foreign[] = {"ifnull", "pragma", "rowid", "oid", "autoincrement", "glob",
	"datetime", "strftime", "julianday", "unixepoch", "json_each", "json_extract",
	"sqlite_sequence", "sqlite_master", "zeroblob", "instr", "iif", "total", "group_concat",
	"replace", "vacuum", "attach", "indexed", "raise", "user", "key", "hex", "randomblob",
	"last_insert_rowid", "changes", "nocase", "returning"};

struct reader {
	const char *at;
	char word[64]; /* the last token: a word in small letters, or one character */
	char before[64];
	unsigned depth;
	bool selects[DEPTH_MAX];  /* there is a SELECT at this depth, */
	bool has_from[DEPTH_MAX]; /* and it has a FROM */
};

/* Texts and names in quotes are skipped. */
static bool next(struct reader *reader)
{
	size_t len = 0;

	memcpy(reader->before, reader->word, sizeof(reader->word));
	for (;;) {
		while (isspace((unsigned char)*reader->at))
			reader->at++;
		if (*reader->at != '\'' && *reader->at != '"')
			break;
		reader->at = strchr(reader->at + 1, *reader->at) + 1;
	}
	if (!*reader->at)
		return false;
	do
		reader->word[len++] = (char)tolower((unsigned char)*reader->at++);
	while (len + 1 < sizeof(reader->word) && (isalnum((unsigned char)reader->word[len - 1])) &&
		(isalnum((unsigned char)*reader->at) || *reader->at == '_'));
	reader->word[len] = '\0';
	return true;
}

static bool was(const struct reader *reader, const char *before, const char *word)
{
	return strcmp(reader->before, before) == 0 && strcmp(reader->word, word) == 0;
}

/* Returns what is wrong with the last token, or NULL. */
static const char *judge(struct reader *reader)
{
	unsigned depth = reader->depth;

	for (size_t i = 0; i < array_len(foreign); i++) {
		if (strcmp(reader->word, foreign[i]) == 0)
			return foreign[i];
	}
	if (was(reader, "insert", "or") || was(reader, "update", "or"))
		return "INSERT OR, UPDATE OR";
	if (was(reader, "limit", "-"))
		return "LIMIT -1";
	if (strcmp(reader->word, "select") == 0)
		reader->selects[depth] = true, reader->has_from[depth] = false;
	else if (strcmp(reader->word, "from") == 0)
		reader->has_from[depth] = true;
	else if (strcmp(reader->word, "where") == 0 && reader->selects[depth] &&
		 !reader->has_from[depth])
		return "a WHERE without a FROM";
	return NULL;
}

static const char *find_foreign(const char *sql)
{
	struct reader reader = {.at = sql};
	const char *found;

	while (next(&reader)) {
		found = judge(&reader);
		if (found)
			return found;
		if (reader.word[0] == '(' && reader.depth + 1 < DEPTH_MAX)
			reader.selects[++reader.depth] = false;
		else if (reader.word[0] == ')' && reader.depth > 0)
			reader.depth--;
	}
	return NULL;
}

static void the_check_finds_what_only_sqlite_takes(void **state)
{
	(void)state;
	assert_non_null(find_foreign("UPDATE w SET name = ifnull((SELECT 1 FROM s), name)"));
	assert_non_null(find_foreign("INSERT OR REPLACE INTO t (a) VALUES (?1)"));
	assert_non_null(find_foreign("INSERT INTO r SELECT ?1 WHERE EXISTS (SELECT 1 FROM s)"));
	assert_non_null(find_foreign("SELECT id FROM t WHERE user = ?1"));
	assert_non_null(find_foreign("SELECT id FROM t ORDER BY id LIMIT -1 OFFSET 3"));
	assert_non_null(find_foreign("DELETE FROM t WHERE at < datetime('now')"));
	assert_null(find_foreign("SELECT \"user\" FROM t WHERE \"key\" = 'ifnull' LIMIT ?1"));
	assert_null(
		find_foreign("UPDATE t SET a = (SELECT max(b) FROM u WHERE c = 1) WHERE d = 2"));
}

static void common_statements_are_understood_by_every_database(void **state)
{
	(void)state;
	for (int query = 0; query < Q_ALL; query++) {
		const char *sql = sql_common((enum query)query);
		const char *found = sql ? find_foreign(sql) : NULL;

		if (found)
			fail_msg("not for all databases: %s, in: %s", found, sql);
	}
}

static void each_database_has_a_text_for_every_statement(void **state)
{
	(void)state;
	for (int dialect = 0; dialect < DB_DIALECT_COUNT; dialect++) {
		for (int query = 0; query < Q_ALL; query++)
			assert_non_null(sql_text((enum db_dialect)dialect, (enum query)query));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_check_finds_what_only_sqlite_takes),
		cmocka_unit_test(common_statements_are_understood_by_every_database),
		cmocka_unit_test(each_database_has_a_text_for_every_statement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
