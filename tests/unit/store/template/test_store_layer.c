/* SPDX-License-Identifier: Apache-2.0 */
/* Layers in the database: what is used is never marked as gone, and what is marked is used by nothing new. */
#include "core/engine/sandbox_handle.h"
#include "store/access/store_quota.h"
#include "store/sandbox/store_snapshot.h"
#include "store/store_clock.h"
#include "store/template/store_build.h"
#include "store/template/store_dependency_file.h"
#include "store/template/store_layer.h"
#include "store/template/store_template.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAYER "1111111111111111111111111111111111111111111111111111111111111111"
#define OTHER "2222222222222222222222222222222222222222222222222222222222222222"
#define STACK "3333333333333333333333333333333333333333333333333333333333333333"
#define LATER INT64_MAX /* what was used before this is all */

static const struct owner bob_of_other = {.organization = "other", .user = "bob"};

static const struct layer_expiry all = {LATER, LATER};

static json_t *image_of(void)
{
	return json_pack("{s:s, s:[s]}", "stack", STACK, "layers", "sha256:" LAYER);
}

static void make(struct store *store)
{
	struct err err;

	assert_int_equal(store_layer_begin(store, LAYER, false, &err), 0);
	assert_int_equal(store_layer_note(store, &alice, LAYER, 1000, STORE_LAYER_PYTHON, &err), 0);
	assert_int_equal(store_layer_begin(store, STACK, true, &err), 0);
}

/* Layers that nothing uses. */
static int list(struct store *store, int64_t before_ms, const char *after,
	struct layer_file files[], size_t max)
{
	struct layer_expiry expiry = {before_ms, 0};
	struct err err;

	return store_layer_list_unused(store, &expiry, false, false, after, files, max, &err);
}

/* How many layers and stacks nothing uses. */
static int count_unused(struct store *store)
{
	struct layer_file files[8];
	struct err err;
	int layers = store_layer_list_unused(store, &all, false, false, "", files, 8, &err);
	int stacks = store_layer_list_unused(store, &all, false, true, "", files, 8, &err);

	assert_true(layers >= 0 && stacks >= 0);
	return layers + stacks;
}

static void assert_used(struct store *store)
{
	struct err err;

	assert_int_equal(count_unused(store), 0);
	assert_int_equal(store_layer_mark(store, LAYER, LATER, &err), 0);
	assert_int_equal(store_layer_mark(store, STACK, LATER, &err), 0);
}

static void what_nothing_uses_is_listed_with_what_it_takes(void **state)
{
	struct fixture *fixture = *state;
	struct layer_file files[2];

	make(fixture->store);
	assert_int_equal(list(fixture->store, LATER, "", files, 2), 1);
	assert_string_equal(files[0].name, LAYER);
	assert_int_equal(files[0].bytes, 1000);
	assert_false(files[0].is_stack);
	assert_int_equal(list(fixture->store, LATER, LAYER, files, 2), 0);
	assert_int_equal(list(fixture->store, files[0].used_at_ms, "", files, 2), 0);
}

static void a_sandbox_keeps_its_layers_also_when_it_is_stopped(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(1), "");
	struct err err;

	make(fixture->store);
	json_decref(record.image);
	record.image = image_of();
	record.status = SANDBOX_STOPPED;
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
	assert_used(fixture->store);
	assert_int_equal(store_sandbox_delete(fixture->store, record.id, &err), 0);
	assert_int_equal(count_unused(fixture->store), 2);
	sandbox_record_fini(&record);
}

static void a_sandbox_and_its_snapshot_keep_a_layer_of_packages(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(1), "");
	struct snapshot_record snapshot = {.owner = alice, .name = "s"};
	struct layer_file files[2];
	struct err err;

	assert_int_equal(store_layer_begin(fixture->store, LAYER, false, &err), 0);
	json_object_set_new(record.dependencies, "layer", json_string(LAYER));
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
	assert_int_equal(list(fixture->store, LATER, "", files, 2), 0);
	assert_int_equal(store_layer_mark(fixture->store, LAYER, LATER, &err), 0);
	memcpy(snapshot.id, id_of(2), sizeof(snapshot.id));
	memcpy(snapshot.sandbox_id, record.id, sizeof(snapshot.sandbox_id));
	snapshot.settings = snapshot_record_describe(&record);
	assert_int_equal(store_snapshot_insert(fixture->store, &snapshot, &err), 0);
	assert_int_equal(store_sandbox_delete(fixture->store, record.id, &err), 0);
	assert_int_equal(list(fixture->store, LATER, "", files, 2), 0);
	assert_int_equal(store_snapshot_delete(fixture->store, snapshot.id, &err), 0);
	assert_int_equal(list(fixture->store, LATER, "", files, 2), 1);
	snapshot_record_fini(&snapshot);
	sandbox_record_fini(&record);
}

static int fill_template(struct template_record *record, bool is_new, void *arg, struct err *err)
{
	(void)is_new, (void)arg, (void)err;
	json_decref(record->image);
	record->image = image_of();
	record->version = 1;
	return 0;
}

static void a_template_keeps_its_layers(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	make(fixture->store);
	assert_int_equal(store_template_change(
				 fixture->store, &bob_of_other, "app", fill_template, NULL, &err),
		0);
	assert_used(fixture->store);
	assert_int_equal(store_template_delete(fixture->store, &bob_of_other, "app", &err), 0);
	assert_int_equal(count_unused(fixture->store), 2);
}

static void an_image_that_nobody_named_is_forgotten_when_no_sandbox_has_it(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(1), "");
	struct layer_file files[2];
	struct err err;

	make(fixture->store);
	json_decref(record.image);
	record.image = image_of();
	strcpy(record.template_name, "registry.test/app:1");
	assert_int_equal(store_template_change(fixture->store, &alice, record.template_name,
				 fill_template, NULL, &err),
		0);
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
	assert_int_equal(store_layer_expire(fixture->store, &all, &err), 0);
	assert_int_equal(store_sandbox_delete(fixture->store, record.id, &err), 0);
	assert_used(fixture->store);
	/* Ahead of the time nothing is changed. */
	assert_int_equal(
		store_layer_list_unused(fixture->store, &all, true, true, "", files, 2, &err), 1);
	assert_used(fixture->store);
	assert_int_equal(store_layer_expire(fixture->store, &all, &err), 0);
	assert_int_equal(count_unused(fixture->store), 2);
	sandbox_record_fini(&record);
}

static void a_snapshot_keeps_its_layers_before_it_is_finished(void **state)
{
	struct fixture *fixture = *state;
	struct snapshot_record record = {.owner = alice};
	struct err err;

	make(fixture->store);
	snprintf(record.id, sizeof(record.id), "%s", id_of(1));
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", id_of(2));
	record.settings = json_pack("{s:o}", "image", image_of());
	assert_int_equal(store_snapshot_insert(fixture->store, &record, &err), 0);
	assert_used(fixture->store);
	assert_int_equal(store_snapshot_delete(fixture->store, record.id, &err), 0);
	assert_int_equal(count_unused(fixture->store), 2);
	snapshot_record_fini(&record);
}

static void a_step_of_a_build_keeps_its_layer_for_as_long_as_it_is_remembered(void **state)
{
	struct fixture *fixture = *state;
	struct build_cache_entry entry = {.diff_id = "sha256:" LAYER};
	struct err err;

	make(fixture->store);
	assert_int_equal(store_build_cache_put(fixture->store, &alice, "step", &entry, &err), 0);
	assert_int_equal(count_unused(fixture->store), 1);
	assert_int_equal(
		store_layer_expire(fixture->store, &(struct layer_expiry){LATER, 0}, &err), 0);
	assert_int_equal(count_unused(fixture->store), 1);
	assert_int_equal(store_layer_has(fixture->store, &alice, LAYER, &err), 1);
	assert_int_equal(store_layer_expire(fixture->store, &all, &err), 0);
	assert_int_equal(count_unused(fixture->store), 2);
	/* And the owner has it no more. */
	assert_int_equal(store_layer_has(fixture->store, &alice, LAYER, &err), 0);
}

static void nothing_new_uses_what_is_marked_as_gone(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(1), "");
	struct layer_file files[4];
	struct err err;

	make(fixture->store);
	json_decref(record.image);
	record.image = image_of();
	assert_int_equal(store_layer_mark(fixture->store, STACK, LATER, &err), 1);
	assert_int_equal(store_layer_mark(fixture->store, STACK, LATER, &err), 0);
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), -EEXIST);
	assert_string_equal(err.code, STORE_IMAGE_MISSING);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_template_change(fixture->store, &alice, "app", fill_template, NULL, &err),
		-EEXIST);
	assert_int_equal(store_layer_mark(fixture->store, LAYER, LATER, &err), 1);
	assert_int_equal(store_layer_has(fixture->store, &alice, LAYER, &err), 0);
	assert_int_equal(store_layer_list_marked(fixture->store, "", files, 4, &err), 2);
	/* Made anew, it is as any other. */
	assert_int_equal(store_layer_begin(fixture->store, STACK, true, &err), 0);
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
}

static void what_was_forgotten_is_known_no_more(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	make(fixture->store);
	assert_int_equal(store_layer_is_known(fixture->store, LAYER, &err), 1);
	assert_int_equal(store_layer_mark(fixture->store, LAYER, LATER, &err), 1);
	assert_int_equal(store_layer_is_marked(fixture->store, LAYER, &err), 1);
	assert_int_equal(store_layer_forget(fixture->store, LAYER, &err), 0);
	assert_int_equal(store_layer_is_known(fixture->store, LAYER, &err), 0);
	assert_int_equal(store_layer_begin(fixture->store, LAYER, false, &err), 0);
	assert_int_equal(store_layer_has(fixture->store, &alice, LAYER, &err), 0);
}

static void an_owner_has_what_it_brought_and_no_other_owner_pays_for_it(void **state)
{
	struct fixture *fixture = *state;
	struct quota_state quota;
	struct quota limit;
	struct err err;

	make(fixture->store);
	assert_int_equal(store_layer_has(fixture->store, &bob_of_other, LAYER, &err), 0);
	assert_int_equal(store_layer_note(fixture->store, &alice, LAYER, -1, 0, &err), 0);
	assert_int_equal(store_layer_python(fixture->store, LAYER, &err), STORE_LAYER_PYTHON);
	assert_int_equal(store_quota_get(fixture->store, &alice, &quota, &err), 0);
	assert_int_equal(quota.used.of[QUOTA_IMAGES], 1000);
	assert_int_equal(store_quota_get(fixture->store, &bob_of_other, &quota, &err), 0);
	assert_int_equal(quota.used.of[QUOTA_IMAGES], 0);
	assert_int_equal(quota_parse("images=1500", &limit), 0);
	assert_int_equal(store_quota_put(fixture->store, &alice, &limit, &err), 0);
	assert_int_equal(
		store_quota_check_more(fixture->store, &alice, QUOTA_IMAGES, 500, &err), 0);
	assert_int_equal(
		store_quota_check_more(fixture->store, &alice, QUOTA_IMAGES, 501, &err), -EAGAIN);
	assert_string_equal(err.code, "quota_exceeded");
	assert_int_equal(
		store_quota_check_more(fixture->store, &bob_of_other, QUOTA_IMAGES, 501, &err), 0);
}

static void layers_of_an_older_database_are_known_and_count_as_used_now(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(1), "");
	struct layer_file files[4];
	struct err err;

	make(fixture->store);
	json_decref(record.image);
	record.image = image_of();
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
	store_close(fixture->store);
	fixture->store = NULL;
	execute(fixture->path, BACK_TO_SCHEMA_24 "INSERT INTO layers (organization, user, diff_id)"
						 " VALUES ('other', 'bob', '" OTHER "')");
	open_store(fixture);
	assert_int_equal(store_layer_mark(fixture->store, LAYER, LATER, &err), 0);
	assert_int_equal(store_layer_mark(fixture->store, STACK, LATER, &err), 0);
	assert_int_equal(store_layer_has(fixture->store, &alice, LAYER, &err), 1);
	assert_int_equal(list(fixture->store, LATER, "", files, 4), 1);
	assert_string_equal(files[0].name, OTHER);
	assert_int_equal(files[0].bytes, -1);
	assert_true(files[0].used_at_ms > store_clock_ms(fixture->store) - 60000);
	assert_int_equal(store_layer_list_unmeasured(fixture->store, "", files, 4, &err), 2);
	assert_int_equal(store_layer_set_bytes(fixture->store, OTHER, 7, &err), 0);
	assert_int_equal(store_layer_list_unmeasured(fixture->store, "", files, 4, &err), 1);
}

static void files_that_name_packages_are_an_owners_own_and_bounded(void **state)
{
	struct store *store = ((struct fixture *)*state)->store;
	size_t half = STORE_DEPENDENCY_FILES_MAX / 2, len;
	char *big = calloc(1, half), *found;
	struct err err;

	assert_int_equal(store_dependency_file_put(store, &alice, "sha256:1", "six", 3, &err), 0);
	assert_int_equal(store_dependency_file_put(store, &alice, "sha256:1", "six", 3, &err), 0);
	assert_int_equal(
		store_dependency_file_get(store, &alice, "sha256:1", &found, &len, &err), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(found, "six", 4);
	free(found);
	assert_int_equal(
		store_dependency_file_get(store, &bob, "sha256:1", &found, &len, &err), -ENOENT);
	assert_int_equal(store_dependency_file_put(store, &alice, "sha256:2", big, half, &err), 0);
	assert_true(store_dependency_file_put(store, &alice, "sha256:3", big, half, &err) < 0);
	assert_string_equal(err.code, "too_many_files");
	assert_int_equal(store_dependency_file_put(store, &bob, "sha256:3", big, half, &err), 0);
	assert_int_equal(store_layer_expire(store, &all, &err), 0);
	assert_int_equal(
		store_dependency_file_get(store, &alice, "sha256:1", &found, &len, &err), -ENOENT);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_nothing_uses_is_listed_with_what_it_takes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_sandbox_keeps_its_layers_also_when_it_is_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_sandbox_and_its_snapshot_keep_a_layer_of_packages, setup, teardown),
		cmocka_unit_test_setup_teardown(a_template_keeps_its_layers, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_image_that_nobody_named_is_forgotten_when_no_sandbox_has_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_snapshot_keeps_its_layers_before_it_is_finished, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_step_of_a_build_keeps_its_layer_for_as_long_as_it_is_remembered, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			nothing_new_uses_what_is_marked_as_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_was_forgotten_is_known_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_owner_has_what_it_brought_and_no_other_owner_pays_for_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			layers_of_an_older_database_are_known_and_count_as_used_now, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			files_that_name_packages_are_an_owners_own_and_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
