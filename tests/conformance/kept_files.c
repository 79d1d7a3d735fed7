/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver must do with the files of sandboxes, of images, projects and snapshots. */
#include "base/clock.h"
#include "base/fd.h"
#include "core/template/image/tree_stream.h"
#include "suite.h"
#include "wire/agent.h"
#include "wire/frame.h"
#include "wire/layer.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void a_workspace_outlives_a_stop_and_a_delete_but_no_purge(void **state)
{
	static const char look[] = "cat /workspace/outputs/file /var/tmp/file 2>/dev/null; :";
	char id[ID_LEN + 1];
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1, "echo one > /workspace/outputs/file; echo two > /var/tmp/file", "");
	close(link);
	must_stop(id);
	link = must_start(id);
	must_print(link, 1, look, "one\ntwo\n");
	close(link);
	must_stop(id);
	must_clean(id, DRIVER_PART_ALL);
	assert_true(is_stored(id));
	link = must_start(id);
	must_print(link, 1, look, "one\n");
	discard(id, link);
	link = must_start(id);
	must_print(link, 1, look, "");
	discard(id, link);
}

/* Its files belong to it whatever daemon starts it, and whoever was started meanwhile. */
void files_stay_the_sandbox_s_own_over_a_new_daemon(void **state)
{
	static const char look[] = "stat -c '%u %g' /workspace/outputs/file /workspace/outputs";
	char ids[3][ID_LEN + 1];
	int links[3];

	(void)state;
	NEEDS_AGENT;
	for (size_t i = 0; i < array_len(ids); i++) {
		new_id(ids[i]);
		links[i] = must_start(ids[i]);
		must_print(links[i], 1, "echo x > /workspace/outputs/file", "");
		close(links[i]);
		must_stop(ids[i]);
	}
	discard(ids[0], -1);
	subject->close(driver);
	driver = subject->open();
	assert_false(is_stored(ids[0]));
	assert_true(is_stored(ids[1]) && is_stored(ids[2]));
	links[0] = must_start(ids[0]);
	for (size_t i = 1; i < array_len(ids); i++) {
		links[i] = must_start(ids[i]);
		must_print(links[i], 1, look, "0 0\n1000 1000\n");
	}
	for (size_t i = 0; i < array_len(ids); i++)
		discard(ids[i], links[i]);
}

void a_reset_empties_system_and_scratch(void **state)
{
	char id[ID_LEN + 1];
	int link;

	(void)state;
	NEEDS_AGENT;
	new_id(id);
	link = must_start(id);
	must_print(link, 1, "echo x | tee /workspace/outputs/file > /var/tmp/file", "");
	close(link);
	must_stop(id);
	must_clean(id, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
	link = must_start(id);
	must_print(link, 1, "cat /workspace/outputs/file /var/tmp/file 2>/dev/null; :", "");
	discard(id, link);
}

/* --- trees of files --- */

/* What a tree is told to be: a line for each entry, and the content of files. */
struct told {
	struct buf text;
	uint64_t inodes;
};

static int tell_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	static const char *const kinds[] = {[LAYER_FILE] = "file",
		[LAYER_DIRECTORY] = "dir",
		[LAYER_SYMLINK] = "symlink",
		[LAYER_HARDLINK] = "hardlink",
		[LAYER_FIFO] = "fifo",
		[LAYER_WHITEOUT] = "whiteout",
		[LAYER_OPAQUE] = "opaque"};
	struct told *told = arg;
	char line[256];

	(void)err;
	told->inodes += entry->inode > 0;
	snprintf(line, sizeof(line), "%s %s %s %o %u:%u %zu\n", kinds[entry->kind], entry->path,
		entry->target, (unsigned)entry->mode, entry->uid, entry->gid, entry->xattr_count);
	buf_append(&told->text, line, strlen(line));
	return 0;
}

static int tell_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct told *told = arg;
	char line[64];

	(void)err;
	snprintf(line, sizeof(line), "%llu+%zu ", (unsigned long long)offset, len);
	buf_append(&told->text, line, strlen(line));
	buf_append(&told->text, data, len < 16 ? len : 16);
	return 0;
}

static void must_tell(
	enum driver_tree tree, const char *name, bool has_content, const char *const expected[])
{
	struct told told = {.text = BUF_INIT(1 << 20)};
	const struct layer_sink sink = {tell_entry, tell_content, &told};
	struct err err = {0};

	if (tree_stream_run(driver, tree, name, has_content, &sink, &err) < 0)
		fail_msg("%s", err.message);
	buf_append(&told.text, "", 1);
	for (; *expected; expected++) {
		if (!strstr((const char *)told.text.data, *expected))
			fail_msg("%s is not in %s", *expected, (const char *)told.text.data);
	}
	assert_int_equal(told.inodes > 0, !has_content);
	buf_fini(&told.text);
}

void what_a_sandbox_has_written_can_be_read(void **state)
{
	static const char line[] =
		"cd /var/tmp; echo hello > a; ln a b; ln -s /etc/passwd c; mkfifo d;"
		"chown 7:8 a; chmod 4711 a; mkdir 'e f'; truncate -s 1M s; echo x >> s;"
		"rm /etc/hostname; printf in > /workspace/outputs/o";
	static const char *const system[] = {"file var/tmp/a  4711 7:8 0\n0+6 hello\n",
		"hardlink var/tmp/b var/tmp/a ", "symlink var/tmp/c /etc/passwd 777 0:0",
		"fifo var/tmp/d ", "dir var/tmp/e f  755 0:0", "file var/tmp/s ", "1048576+2 x\n",
		"whiteout etc/hostname ", NULL};
	static const char *const names[] = {"file var/tmp/a ", "hardlink var/tmp/b ", NULL};
	static const char *const workspace[] = {"file outputs/o  644 0:0 0\n0+2 in", NULL};
	const struct layer_sink none = {tell_entry, tell_content, NULL};
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	new_id(id);
	link = must_start(id);
	must_print(link, 1, line, "");
	must_tell(DRIVER_TREE_SYSTEM, id, false, names); /* also while it runs */
	close(link);
	must_stop(id);
	must_tell(DRIVER_TREE_SYSTEM, id, true, system);
	must_tell(DRIVER_TREE_SYSTEM, id, false, names);
	must_tell(DRIVER_TREE_WORKSPACE, id, true, workspace);
	link = must_start(id); /* no reader keeps its disk */
	discard(id, link);
	assert_not_found(tree_stream_run(driver, DRIVER_TREE_SYSTEM, id, true, &none, &err), &err);
	assert_not_found(tree_stream_run(driver, DRIVER_TREE_LAYER,
				 "0000000000000000000000000000000000000000000000000000000000000000",
				 true, &none, &err),
		&err);
}

static void pack_layer_item(
	struct buf *out, enum layer_item kind, const char *name, uint32_t mode, const char *content)
{
	pack_u8(out, (uint8_t)kind);
	pack_u32(out, mode);
	pack_u32(out, 0);
	pack_u32(out, 0);
	pack_u64(out, 0);
	pack_u64(out, strlen(content));
	pack_str(out, name);
	pack_str(out, "");
	pack_u32(out, 0);
	if (kind != LAYER_ITEM_FILE)
		return;
	pack_u64(out, 0);
	pack_u32(out, (uint32_t)strlen(content));
	buf_append(out, content, strlen(content));
	pack_u64(out, 0);
	pack_u32(out, 0);
}

/* Writes a layer with one file. */
static void must_write_layer(const char *layer, const char *name, const char *content)
{
	auto_(buf_fini) struct buf items = BUF_INIT(4096);
	struct err err = {0};
	uint32_t failure = 1;
	int stream;

	pack_layer_item(&items, LAYER_ITEM_FILE, name, 0644, content);
	pack_layer_item(&items, LAYER_ITEM_END, "", 0, "");
	if (driver->ops->write_layer(driver, layer, &stream, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(fd_write_full(stream, items.data, items.len), 0);
	assert_int_equal(fd_set_timeout(stream, SUBJECT_PATIENCE_MS), 0);
	assert_int_equal(fd_read_full(stream, &failure, sizeof(failure)), 0);
	assert_int_equal(failure, 0);
	close(stream);
	buf_fini(&items);
	if (driver->ops->commit_layer(driver, layer, &err) < 0)
		fail_msg("%s", err.message);
}

void a_layer_is_shown_to_a_running_sandbox(void **state)
{
	static const char *const layers[] = {
		"1111111111111111111111111111111111111111111111111111111111111111",
		"2222222222222222222222222222222222222222222222222222222222222222"};
	static const char look[] = "cd /opt/dependencies; stat -c '%n %U %a' *; cat *;"
				   "touch x 2>/dev/null && echo written; :";
	char id[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	new_id(id);
	must_write_layer(layers[0], "opt/dependencies/a", "one\n");
	must_write_layer(layers[1], "opt/dependencies/b", "two\n");
	assert_not_found(driver->ops->show_layer(driver, id, layers[0], &err), &err);
	link = must_start(id);
	must_print(link, 1, "ls /opt/dependencies", "");
	assert_int_equal(driver->ops->show_layer(driver, id, layers[0], &err), 0);
	must_print(link, 2, look, "a root 644\none\n");
	assert_int_equal(driver->ops->show_layer(driver, id, layers[1], &err), 0);
	must_print(link, 3, look, "b root 644\ntwo\n");
	close(link);
	must_stop(id);
	link = must_start(id);
	must_print(link, 1, "ls /opt/dependencies", "");
	/* A link in the way is not followed. */
	must_print(link, 2, "mv /opt /o; ln -s /o /opt", "");
	assert_true(driver->ops->show_layer(driver, id, layers[0], &err) < 0);
	discard(id, link);
	for (size_t i = 0; i < array_len(layers); i++)
		assert_int_equal(driver->ops->drop_layer(driver, layers[i], &err), 0);
}

/* Writes a layer and stops before its commit. */
static void must_leave_layer(const char *layer)
{
	struct err err = {0};
	int stream;

	if (driver->ops->write_layer(driver, layer, &stream, &err) < 0)
		fail_msg("%s", err.message);
	close(stream);
}

/* These layers are there in this order and no others, and this stack (NULL: none). */
static void assert_layers(const char *const layers[], int count, const char *stack)
{
	char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1];
	struct err err = {0};

	assert_int_equal(driver->ops->list_layers(driver, false, "", names, &err), count);
	for (int i = 0; i < count; i++)
		assert_string_equal(names[i], layers[i]);
	if (count > 0)
		assert_int_equal(
			driver->ops->list_layers(driver, false, layers[0], names, &err), count - 1);
	assert_int_equal(driver->ops->list_layers(driver, true, "", names, &err), stack ? 1 : 0);
	if (stack)
		assert_string_equal(names[0], stack);
}

void a_sandbox_starts_from_a_stack_of_layers(void **state)
{
	static const char *const layers[] = {
		"3333333333333333333333333333333333333333333333333333333333333333",
		"4444444444444444444444444444444444444444444444444444444444444444"};
	static const char stack[] =
		"5555555555555555555555555555555555555555555555555555555555555555";
	struct driver_spec spec;
	char id[ID_LEN + 1];
	struct err err = {0};
	int fd = -1;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	must_leave_layer(layers[0]); /* what was left half written is replaced */
	must_write_layer(layers[0], "upper/a", "one\n");
	must_write_layer(layers[1], "lower/b", "two\n");
	assert_int_equal(driver->ops->write_layer(driver, layers[1], &fd, &err), -EEXIST);
	assert_int_equal(fd, -1);
	assert_int_equal(driver->ops->stack_layers(driver, stack, layers, 2, &err), 0);
	assert_int_equal(driver->ops->stack_layers(driver, stack, layers, 2, &err), 0);
	for (int run = 0; run < 2; run++) {
		new_id(id);
		spec = subject_spec(id);
		spec.stack = stack;
		fd = must_start_as(&spec);
		must_stat(id, "/upper");
		must_stat(id, "/lower");
		must_stat(id, "/workspace");
		discard(id, fd);
	}
	assert_layers(layers, 2, stack);
	assert_int_equal(driver->ops->drop_layer(driver, layers[1], &err), -EEXIST);
	assert_string_equal(err.code, DRIVER_LAYER_IN_USE);
	assert_int_equal(driver->ops->drop_stack(driver, stack, &err), 0);
	for (size_t i = 0; i < array_len(layers); i++)
		assert_int_equal(driver->ops->drop_layer(driver, layers[i], &err), 0);
	assert_layers(NULL, 0, NULL);
	/* It is gone, and so its name can be written again. */
	must_leave_layer(layers[1]);
	assert_int_equal(driver->ops->drop_layer(driver, layers[1], &err), 0);
}

/* What has changed beside what the sandbox was started from, by name. */
static void must_tell_changes(enum driver_tree tree, const char *name, const char *const expected[])
{
	struct told told = {.text = BUF_INIT(1 << 20)};
	const struct layer_entry *entry;
	struct tree_stream *stream;
	struct err err = {0};

	if (tree_stream_open(driver, tree, name, "", &stream, &err) < 0)
		fail_msg("%s", err.message);
	while (tree_stream_next(stream, &entry, &err) > 0)
		(void)!tell_entry(&told, entry, &err);
	tree_stream_close(stream);
	assert_int_equal(err.kind, ERR_NONE);
	buf_append(&told.text, "", 1);
	for (; *expected; expected++) {
		const char *text = *expected + (**expected == '!');

		if (!strstr((const char *)told.text.data, text) != (**expected == '!'))
			fail_msg("%s: %s", *expected, (const char *)told.text.data);
	}
	buf_fini(&told.text);
}

/* Of a sandbox that runs or does not, and of its snapshot: only what is not as it was before. */
void changes_are_told_beside_what_was_there(void **state)
{
	static const char *const expected[] = {"file var/tmp/new ", "whiteout etc/hostname ",
		"symlink etc/link ", "!etc/passwd", NULL};
	char id[ID_LEN + 1], snapshot[ID_LEN + 1];
	struct tree_stream *none;
	struct err err = {0};
	uint64_t bytes;
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_LAYERS);
	new_id(id);
	assert_not_found(tree_stream_open(driver, DRIVER_TREE_CHANGES, id, "", &none, &err), &err);
	link = must_start(id);
	must_print(link, 1,
		"echo x > /var/tmp/new; rm /etc/hostname; ln -s /nowhere /etc/link; "
		"cat /etc/passwd >/dev/null",
		"");
	must_tell_changes(DRIVER_TREE_CHANGES, id, expected);
	new_id(snapshot);
	if (driver_can(driver, DRIVER_SNAPSHOTS)) {
		assert_int_equal(driver->ops->take_snapshot(
					 driver, id, snapshot, DRIVER_COPY_KEPT, &bytes, &err),
			0);
		must_tell_changes(DRIVER_TREE_SNAPSHOT_CHANGES, snapshot, expected);
		assert_int_equal(driver->ops->drop_snapshot(driver, snapshot, &err), 0);
	}
	close(link);
	must_stop(id);
	must_tell_changes(DRIVER_TREE_CHANGES, id, expected);
	link = must_start(id);
	discard(id, link);
}

/* --- snapshots --- */

static bool is_snapshot(const char *id)
{
	char ids[DRIVER_PAGE][ID_LEN + 1], after[ID_LEN + 1] = "";
	struct err err;
	int count;

	do {
		count = driver->ops->list_snapshots(driver, after, ids, &err);
		assert_true(count >= 0 && count <= DRIVER_PAGE);
		for (int i = 0; i < count; i++) {
			assert_true(strcmp(ids[i], after) > 0);
			if (strcmp(ids[i], id) == 0)
				return true;
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == DRIVER_PAGE);
	return false;
}

static void must_take(const char *id, const char *snapshot, enum driver_copy copy)
{
	struct err err = {0};
	uint64_t bytes = 0;

	if (driver->ops->take_snapshot(driver, id, snapshot, copy, &bytes, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(bytes > 0);
	assert_true(is_snapshot(snapshot));
}

static void must_load(const char *id, const char *snapshot, bool takes)
{
	struct err err = {0};

	if (driver->ops->load_snapshot(driver, id, snapshot, takes, &err) < 0)
		fail_msg("%s", err.message);
}

static const char look_at_both[] = "cat /workspace/outputs/file /var/tmp/file 2>/dev/null; :";

/* It outlives its sandbox, and what that writes later is not in it. */
void a_snapshot_is_all_files_at_one_moment(void **state)
{
	char id[ID_LEN + 1], snapshot[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_SNAPSHOTS);
	new_id(id);
	new_id(snapshot);
	link = must_start(id);
	must_print(link, 1, "echo one > /workspace/outputs/file; echo two > /var/tmp/file", "");
	must_take(id, snapshot, DRIVER_COPY_KEPT);
	must_print(link, 2, "echo later | tee /workspace/outputs/file > /var/tmp/file", "");
	close(link);
	must_stop(id);
	/* The same sandbox goes back to it, */
	must_load(id, snapshot, false);
	link = must_start(id);
	must_print(link, 1, look_at_both, "one\ntwo\n");
	discard(id, link);
	assert_false(is_stored(id));
	/* and another begins with it, over a new daemon, whoever its files belonged to. */
	subject->close(driver);
	driver = subject->open();
	assert_true(is_snapshot(snapshot));
	new_id(id);
	must_load(id, snapshot, false);
	assert_true(is_stored(id));
	link = must_start(id);
	must_print(link, 1, look_at_both, "one\ntwo\n");
	must_print(link, 2, "stat -c '%u %g' /workspace/outputs/file /workspace/outputs",
		"0 0\n1000 1000\n");
	discard(id, link);
	assert_int_equal(driver->ops->drop_snapshot(driver, snapshot, &err), 0);
	assert_false(is_snapshot(snapshot));
	assert_int_equal(driver->ops->drop_snapshot(driver, snapshot, &err), 0);
}

static void use_up(enum driver_copy how, bool runs)
{
	char id[ID_LEN + 1], copy[ID_LEN + 1], snapshot[ID_LEN + 1];
	struct err err = {0};
	int link, other;

	new_id(id);
	new_id(copy);
	new_id(snapshot);
	link = must_start(id);
	must_print(link, 1, "echo one > /workspace/outputs/file; echo two > /var/tmp/file", "");
	if (!runs) {
		close(link);
		must_stop(id);
	}
	must_take(id, snapshot, how);
	must_load(copy, snapshot, true);
	other = must_start(copy);
	must_print(other, 1, look_at_both, "one\ntwo\n");
	must_print(other, 2, "stat -c '%u %g' /workspace/outputs/file /workspace/outputs",
		"0 0\n1000 1000\n");
	discard(copy, other);
	/* The first has its own still. */
	if (!runs)
		link = must_start(id);
	must_print(link, 3, look_at_both, "one\ntwo\n");
	discard(id, link);
	assert_int_equal(driver->ops->drop_snapshot(driver, snapshot, &err), 0);
	assert_false(is_snapshot(snapshot));
}

/* Taken of one that runs or not, and used up. */
void a_snapshot_may_be_used_up(void **state)
{
	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_SNAPSHOTS);
	use_up(DRIVER_COPY_TEMPORARY, false);
	use_up(DRIVER_COPY_NEXT, false);
	use_up(DRIVER_COPY_NEXT, true);
}

/* The sandbox that was to take it is not made. */
void a_snapshot_that_is_not_used_up_goes(void **state)
{
	char id[ID_LEN + 1], snapshot[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_SNAPSHOTS);
	new_id(id);
	new_id(snapshot);
	link = must_start(id);
	must_take(id, snapshot, DRIVER_COPY_NEXT);
	assert_int_equal(driver->ops->drop_snapshot(driver, snapshot, &err), 0);
	assert_false(is_snapshot(snapshot));
	/* Nothing of it is in the way. */
	must_take(id, snapshot, DRIVER_COPY_NEXT);
	assert_int_equal(driver->ops->drop_snapshot(driver, snapshot, &err), 0);
	discard(id, link);
}

void files_stay_if_there_is_no_such_snapshot(void **state)
{
	char id[ID_LEN + 1], snapshot[ID_LEN + 1];
	struct err err = {0};
	uint64_t bytes = 0;
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_SNAPSHOTS);
	new_id(id);
	new_id(snapshot);
	assert_true(driver->ops->take_snapshot(
			    driver, id, snapshot, DRIVER_COPY_KEPT, &bytes, &err) < 0);
	assert_false(is_snapshot(snapshot));
	link = must_start(id);
	must_print(link, 1, "echo one > /workspace/outputs/file; echo two > /var/tmp/file", "");
	close(link);
	must_stop(id);
	assert_true(driver->ops->load_snapshot(driver, id, snapshot, false, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_string_equal(err.code, "snapshot_missing");
	link = must_start(id);
	must_print(link, 1, look_at_both, "one\ntwo\n");
	discard(id, link);
}

/* --- projects --- */

/* What is added later is seen too; nothing can be written; and it goes with the run of the sandbox. */
void a_running_sandbox_is_shown_the_files_of_a_project(void **state)
{
	static const char look[] = "cd " DRIVER_PROJECT_PLACE " && cat * 2>/dev/null; "
				   "touch x 2>/dev/null && echo written; :";
	char id[ID_LEN + 1], project[ID_LEN + 1], missing[ID_LEN + 1];
	struct err err = {0};
	int link;

	(void)state;
	NEEDS_AGENT;
	NEEDS(DRIVER_PROJECT_FILES);
	new_id(id);
	new_id(project);
	new_id(missing);
	subject->put_project_file(project, "a", "one\n");
	assert_not_found(driver->ops->show_project(driver, id, project, &err), &err);
	link = must_start(id);
	assert_true(driver->ops->show_project(driver, id, missing, &err) < 0);
	assert_int_equal(driver->ops->show_project(driver, id, project, &err), 0);
	must_print(link, 1, look, "one\n");
	subject->put_project_file(project, "b", "two\n");
	must_print(link, 2, look, "one\ntwo\n");
	close(link);
	must_stop(id);
	link = must_start(id);
	must_print(link, 1, "cat " DRIVER_PROJECT_PLACE "/a 2>/dev/null; :", "");
	discard(id, link);
}
