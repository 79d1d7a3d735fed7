/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "model/template/dependency_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LIST(...)                                                                                  \
	((struct text_list){(const char *const[]){__VA_ARGS__},                                    \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)})

static void must_be(json_t *set, const char *expected)
{
	char *text = json_dumps(set, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(text, expected);
	free(text);
	json_decref(set);
}

static void names_with_versions_are_packages(void **state)
{
	static const char *const python[] = {"requests", "a", "Zope.Interface", "numpy==1.26.*",
		"requests[socks,use-chardet] >= 2.8.1, < 3", "x~=1.0", "a===1.0+local",
		"tomli>=1; python_version < '3.11'"};
	static const char *const node[] = {"left-pad", "a", "@types/node", "left-pad@1.3.0",
		"@types/node@^20", "x@>=1 <2 || ~3.4", "x@latest", "JSONStream"};

	(void)state;
	for (size_t i = 0; i < array_len(python); i++)
		assert_null(dependency_set_check_python(python[i]));
	for (size_t i = 0; i < array_len(node); i++)
		assert_null(dependency_set_check_node(node[i]));
}

static void orders_and_places_are_no_packages(void **state)
{
	static const char *const python[] = {"", " a", "-r", "--index-url=x", "-e.", ".", "./a",
		"/a", "a/b", "a @ https://x/a.whl", "git+https://x", "https://x/a.whl",
		"a==", "a,b", "a b", "a[", "a[b", "a>=1,", "a>=1 <2", "a\n-r b", "a#b", "a;$(x)",
		"a;`x`", "a_", "a; x @ y", "a --hash=sha256:00"};
	static const char *const node[] = {"", "-g", "--registry=x", ".", "../a", "/a", "a/b", "@a",
		"@a/", "@/b", "a@", "a@-g", "a@file:b", "a@npm:b", "a@http://x", "a b", "a\nb",
		"_a", "@a/b/c", "a@1/2",
		"git@x"
		":y"};
	char long_one[DEPENDENCY_TEXT_MAX + 2];

	(void)state;
	for (size_t i = 0; i < array_len(python); i++) {
		if (!dependency_set_check_python(python[i]))
			fail_msg("%s is taken for a package", python[i]);
	}
	for (size_t i = 0; i < array_len(node); i++) {
		if (!dependency_set_check_node(node[i]))
			fail_msg("%s is taken for a package", node[i]);
	}
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	/* What follows "field python". */
	assert_memory_equal(dependency_set_check_python("; rm"), "has ", 4);
	assert_non_null(dependency_set_check_python(long_one));
	assert_non_null(dependency_set_check_node(long_one));
}

static void a_set_is_in_order_and_names_each_package_once(void **state)
{
	const struct dependency_spec spec = {.python = LIST("zlib", "A_b.c==1", "a-B-C==2"),
		.node = LIST("@x/y@1", "a@1", "@x/y@2")};

	(void)state;
	must_be(dependency_set_new(&spec),
		"{\"node\":[\"@x/y@2\",\"a@1\"],\"python\":[\"a-B-C==2\",\"zlib\"]}");
	must_be(dependency_set_new(&(struct dependency_spec){0}), "{\"node\":[],\"python\":[]}");
}

static void of_two_sets_the_second_counts(void **state)
{
	const struct dependency_spec old = {.python = LIST("requests", "six"), .node = LIST("a")};
	const struct dependency_spec new = {.python = LIST("Requests==2.31"), .node = LIST("b")};
	json_t *first = dependency_set_new(&old), *second = dependency_set_new(&new);
	json_t *both = dependency_set_join(first, second);

	(void)state;
	assert_false(dependency_set_equals(first, both));
	assert_true(dependency_set_equals(both, both));
	assert_true(dependency_set_equals(NULL, NULL));
	assert_true(dependency_set_is_empty(NULL));
	assert_false(dependency_set_is_empty(first));
	must_be(dependency_set_join(NULL, first),
		"{\"node\":[\"a\"],\"python\":[\"requests\",\"six\"]}");
	must_be(both, "{\"node\":[\"a\",\"b\"],\"python\":[\"Requests==2.31\",\"six\"]}");
	json_decref(first);
	json_decref(second);
}

static void of_files_the_later_counts_and_a_lock_needs_its_manifest(void **state)
{
	json_t *old = json_pack("{s:s, s:s, s:s}", "requirements", "r1", "package_json", "p1",
		"package_lock", "l1");
	json_t *new = json_pack("{s:[s], s:s}", "python", "six", "requirements", "r2");
	struct dependency_spec spec = {.files = {[DEPENDENCY_REQUIREMENTS] = "six"}};
	struct err err;

	(void)state;
	assert_false(dependency_set_is_empty(old));
	assert_false(dependency_set_equals(old, new));
	must_be(dependency_set_join(old, new),
		"{\"node\":[],\"package_json\":\"p1\",\"package_lock\":\"l1\","
		"\"python\":[\"six\"],\"requirements\":\"r2\"}");
	json_decref(old);
	json_decref(new);
	assert_false(dependency_spec_is_empty(&spec));
	assert_int_equal(dependency_set_check(&spec, &err), 0);
	spec.files[DEPENDENCY_PACKAGE_LOCK] = "{}";
	assert_true(dependency_set_check(&spec, &err) < 0);
	spec.files[DEPENDENCY_PACKAGE_JSON] = "{}";
	assert_int_equal(dependency_set_check(&spec, &err), 0);
	spec.files[DEPENDENCY_REQUIREMENTS] = "";
	assert_true(dependency_set_check(&spec, &err) < 0);
	spec.files[DEPENDENCY_REQUIREMENTS] = mem_new(DEPENDENCY_FILE_MAX + 2);
	memset((char *)spec.files[DEPENDENCY_REQUIREMENTS], 'a', DEPENDENCY_FILE_MAX + 1);
	assert_true(dependency_set_check(&spec, &err) < 0);
	free((char *)spec.files[DEPENDENCY_REQUIREMENTS]);
}

static void there_is_a_bound(void **state)
{
	json_t *many = json_array(), *set;
	struct err err;

	(void)state;
	for (int i = 0; i <= DEPENDENCY_PACKAGES_MAX; i++)
		json_array_append_new(many, json_sprintf("p%d", i));
	set = json_pack("{s:o}", "node", many);
	assert_true(dependency_set_check_size(set, &err) < 0);
	json_array_remove(many, 0);
	assert_int_equal(dependency_set_check_size(set, &err), 0);
	json_decref(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_with_versions_are_packages),
		cmocka_unit_test(orders_and_places_are_no_packages),
		cmocka_unit_test(a_set_is_in_order_and_names_each_package_once),
		cmocka_unit_test(of_two_sets_the_second_counts),
		cmocka_unit_test(of_files_the_later_counts_and_a_lock_needs_its_manifest),
		cmocka_unit_test(there_is_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
