/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* "Strings live as long as the process", and those of numbers are not kept: both are meant. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:settings_read\n";
}

static char config[64]; /* a configuration file of the test's own */

static void write_config(const char *text)
{
	FILE *file = fopen(config, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	static const char *const names[] = {"SANDLOT_CONFIG", "SANDLOT_DATA_DIR",
		"SANDLOT_IDLE_TIMEOUT", "SANDLOT_MEMORY", "SANDLOT_CPU", "SANDLOT_STOP_ALL",
		"SANDLOT_API_BIND"};
	int fd;

	(void)state;
	for (size_t i = 0; i < array_len(names); i++)
		unsetenv(names[i]);
	snprintf(config, sizeof(config), "/tmp/sandlot-settings-XXXXXX");
	fd = mkstemp(config);
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(config);
}

/* settings_read promises not to change them. */
#define READ(settings, err, ...)                                                                   \
	settings_read((int)array_len(((const char *[]){"sandlotd", __VA_ARGS__})),                 \
		(char **)(const char *[]){"sandlotd", __VA_ARGS__, NULL}, settings, err)

static void without_anything_all_is_as_documented(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_int_equal(READ(&settings, &err, "--config", config), 0);
	assert_string_equal(settings.data_dir, "/var/lib/sandlot");
	assert_string_equal(settings.api_bind, "127.0.0.1:9090");
	assert_string_equal(settings.user, "sandlot");
	assert_int_equal(settings.idle_timeout_s, 2100);
	assert_true(settings.workspace_retention_s == SETTINGS_NEVER);
	assert_int_equal(settings.layer_retention_s, 7 * 86400);
	assert_int_equal(settings.resources.cpu_millis, 1000);
	assert_int_equal(settings.resources.memory_bytes, 1 << 30);
	assert_false(settings.stop_all || settings.help || settings.version);
}

static void times_have_units_or_count_seconds(void **state)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} cases[] = {{"90", 90}, {"90s", 90}, {"35m", 2100}, {"8h", 28800}, {"30d", 2592000},
		{"never", SETTINGS_NEVER}};
	struct settings settings;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(READ(&settings, &err, "--workspace-retention", cases[i].text,
					 "--config", config),
			0);
		assert_true(settings.workspace_retention_s == cases[i].seconds);
	}
	assert_int_equal(READ(&settings, &err, "--preview-timeout", "5m", "--config", config), 0);
	assert_int_equal(settings.preview_timeout_s, 300);
}

static void a_flag_beats_the_environment_which_beats_the_file(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	write_config("idle-timeout = 11\ndata-dir = /file\n");
	assert_int_equal(READ(&settings, &err, "--config", config), 0);
	assert_int_equal(settings.idle_timeout_s, 11);
	assert_string_equal(settings.data_dir, "/file");
	setenv("SANDLOT_IDLE_TIMEOUT", "22", 1);
	assert_int_equal(READ(&settings, &err, "--config", config), 0);
	assert_int_equal(settings.idle_timeout_s, 22);
	assert_string_equal(settings.data_dir, "/file");
	assert_int_equal(READ(&settings, &err, "--idle-timeout=33", "--config", config), 0);
	assert_int_equal(settings.idle_timeout_s, 33);
	assert_int_equal(READ(&settings, &err, "--idle-timeout", "44", "--idle-timeout", "55",
				 "--config", config),
		0);
	assert_int_equal(settings.idle_timeout_s, 55); /* the last one */
}

static void the_file_can_be_named_by_the_environment(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	write_config("api-bind = [::1]:1234");
	setenv("SANDLOT_CONFIG", config, 1);
	assert_int_equal(READ(&settings, &err, "--data-dir", "/d"), 0);
	assert_string_equal(settings.api_bind, "[::1]:1234");
	setenv("SANDLOT_CONFIG", "/nonexistent", 1);
	assert_int_equal(READ(&settings, &err, "--config", config), 0); /* the flag wins */
	assert_string_equal(settings.api_bind, "[::1]:1234");
}

static void a_file_has_comments_and_space(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	write_config("# all of it\n\n   \t\n  memory=64Mi   # a comment\r\n\tcpu\t=\t0.5\nstop-all "
		     "= true\n"
		     "data-dir = /a b=c\n");
	if (READ(&settings, &err, "--config", config) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(settings.resources.memory_bytes, 64 << 20);
	assert_int_equal(settings.resources.cpu_millis, 500);
	assert_true(settings.stop_all);
	assert_string_equal(settings.data_dir, "/a b=c");
}

static void assert_bad_file(const char *text, const char *words)
{
	struct settings settings = {.data_dir = "untouched"};
	struct err err = {0};

	write_config(text);
	if (READ(&settings, &err, "--config", config) == 0)
		fail_msg("%s is accepted", text);
	assert_int_equal(err.kind, ERR_INVALID);
	if (!strstr(err.message, words))
		fail_msg("%s: \"%s\" lacks \"%s\"", text, err.message, words);
	assert_string_equal(settings.data_dir, "untouched");
}

static void a_wrong_line_is_refused_with_its_number(void **state)
{
	(void)state;
	assert_bad_file("cpu = 1\nnonsense\n", ":2: a line is name = value");
	assert_bad_file("\n\nidel-timeout = 5\n", ":3: there is no setting idel-timeout");
	assert_bad_file("memory = lots\n", ":1: \"lots\" is not a value for memory");
	assert_bad_file("= 5\n", "there is no setting");
	assert_bad_file("cpu =\n", "is not a value for cpu");
}

static void a_file_that_is_too_large_is_refused_and_not_cut(void **state)
{
	char *text = mem_new(80001);

	(void)state;
	memset(text, '\n', 80000);
	memcpy(text + 79000, "idle-timeout = 5", 16);
	assert_bad_file(text, "too large");
	free(text);
}

static void a_file_that_was_asked_for_must_be_there(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_true(READ(&settings, &err, "--config", "/nonexistent/sandlot.conf") < 0);
	assert_non_null(strstr(err.message, "/nonexistent/sandlot.conf"));
}

static void assert_bad_flag(const char *flag, const char *value, const char *words)
{
	struct settings settings;
	struct err err = {0};
	int r = value ? READ(&settings, &err, "--config", config, flag, value)
		      : READ(&settings, &err, "--config", config, flag);

	if (r == 0)
		fail_msg("%s %s is accepted", flag, value ? value : "");
	assert_int_equal(err.kind, ERR_INVALID);
	if (!strstr(err.message, words))
		fail_msg("%s: \"%s\" lacks \"%s\"", flag, err.message, words);
}

static void bad_values_are_refused_by_name(void **state)
{
	static const char range[] = "must be from", no_value[] = "is not a value for";
	static const char *const bad[][3] = {
		{"--idle-timeout", "0", range},
		{"--idle-timeout", "-1", no_value},
		{"--idle-timeout", "+5", no_value},
		{"--idle-timeout", "05", no_value},
		{"--idle-timeout", "5 ", no_value},
		{"--idle-timeout", "5w", no_value},
		{"--idle-timeout", "5mm", no_value},
		{"--idle-timeout", "400d", range},
		{"--preview-timeout", "never", no_value},
		{"--idle-timeout", "", no_value},
		{"--idle-timeout", "99999999999999999999", range},
		{"--workers", "3", range},
		{"--workers", "1025", range},
		{"--memory", "15Mi", range},
		{"--memory", "1K", no_value},
		{"--memory", "-1Gi", no_value},
		{"--memory", "8388608Ti", range},
		{"--cpu", "0", no_value},
		{"--cpu", "nan", no_value},
		{"--cpu", "inf", no_value},
		{"--cpu", "-1", no_value},
		{"--cpu", "1025", no_value},
		{"--cpu", "1x", no_value},
		{"--pids", "3", range},
		{"--stop-all=yes", NULL, no_value},
		{"--stop-all=", NULL, no_value},
		{"--stop-all=TRUE", NULL, no_value},
	};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_bad_flag(bad[i][0], bad[i][1], bad[i][2]);
}

static void bounds_are_inclusive(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_int_equal(READ(&settings, &err, "--config", config, "--workers", "4", "--pids", "4",
				 "--memory", "16Mi", "--cpu", "0.01", "--stop-grace-ms", "0"),
		0);
	assert_int_equal(settings.resources.cpu_millis, 10);
	assert_int_equal(
		READ(&settings, &err, "--config", config, "--workers", "1024", "--cpu", "1024"), 0);
	assert_int_equal(settings.resources.cpu_millis, 1024000);
}

static void unknown_flags_are_refused(void **state)
{
	(void)state;
	assert_bad_flag("--nonsense", "1", "unknown flag --nonsense");
	assert_bad_flag("--", NULL, "unknown flag --");
	assert_bad_flag("positional", NULL, "unknown flag positional");
	assert_bad_flag("-h", NULL, "unknown flag -h");
	assert_bad_flag("", NULL, "unknown flag");
	assert_bad_flag("--data", "/x", "unknown flag --data"); /* no abbreviations */
	assert_bad_flag("--data-dir", NULL, "--data-dir needs a value");
}

static void a_bad_variable_is_refused_by_its_name(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	setenv("SANDLOT_MEMORY", "plenty", 1);
	assert_int_equal(READ(&settings, &err, "--config", config), -EINVAL);
	assert_non_null(strstr(err.message, "SANDLOT_MEMORY"));
	assert_non_null(strstr(err.message, "plenty"));
}

static void a_switch_needs_no_value_and_takes_none_that_follows(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_int_equal(READ(&settings, &err, "--config", config, "--stop-all", "--help"), 0);
	assert_true(settings.stop_all && settings.help && !settings.version);
	setenv("SANDLOT_STOP_ALL", "true", 1);
	assert_int_equal(READ(&settings, &err, "--config", config, "--stop-all=false"), 0);
	assert_false(settings.stop_all);
	assert_bad_flag("--stop-all", "true", "unknown flag true");
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void assert_explained(const char *variable, const char *message, const char *remedy)
{
	struct err err = {0};

	assert_true(settings_explain_variable(variable, &err));
	assert_string_equal(err.message, message);
	assert_string_equal(err.remedy, remedy);
}

static void variables_that_are_no_setting_are_explained(void **state)
{
	static const char *const fine[] = {"SANDLOT_IDLE_TIMEOUT=5", "SANDLOT_URL=http://x",
		"SANDLOT_TOKEN=slt_x", "SANDLOT_CA_FILE=/ca", "SANDLOT_DATA_DIR=", "PATH=/bin",
		"XSANDLOT_IDEL=1"};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < array_len(fine); i++)
		assert_false(settings_explain_variable(fine[i], &err));
	assert_explained("SANDLOT_IDEL_TIMEOUT=5",
		"the variable SANDLOT_IDEL_TIMEOUT is no setting",
		"did you mean SANDLOT_IDLE_TIMEOUT? sandlotd --help lists them");
	assert_explained("SANDLOT_TOKENS=5", "the variable SANDLOT_TOKENS is no setting",
		"sandlotd --help lists them");
	assert_explained(
		"SANDLOT_=5", "the variable SANDLOT_ is no setting", "sandlotd --help lists them");
}

static void a_mistyped_flag_or_line_names_what_was_meant(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_true(READ(&settings, &err, "--idel-timeout", "5") < 0);
	assert_string_equal(err.remedy, "did you mean --idle-timeout? sandlotd --help lists them");
	write_config("data_dir = /x\n");
	assert_true(READ(&settings, &err, "--config", config) < 0);
	assert_string_equal(err.remedy, "did you mean data-dir? sandlotd --help lists them");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_FILE(without_anything_all_is_as_documented),
		WITH_FILE(times_have_units_or_count_seconds),
		WITH_FILE(a_flag_beats_the_environment_which_beats_the_file),
		WITH_FILE(the_file_can_be_named_by_the_environment),
		WITH_FILE(a_file_has_comments_and_space),
		WITH_FILE(a_wrong_line_is_refused_with_its_number),
		WITH_FILE(a_file_that_is_too_large_is_refused_and_not_cut),
		WITH_FILE(a_file_that_was_asked_for_must_be_there),
		WITH_FILE(bad_values_are_refused_by_name),
		WITH_FILE(bounds_are_inclusive),
		WITH_FILE(unknown_flags_are_refused),
		WITH_FILE(variables_that_are_no_setting_are_explained),
		WITH_FILE(a_mistyped_flag_or_line_names_what_was_meant),
		WITH_FILE(a_bad_variable_is_refused_by_its_name),
		WITH_FILE(a_switch_needs_no_value_and_takes_none_that_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
