/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "image/image_archive.h"
#include "image/layer_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LAYER_MAX (8u << 20)
#define TRACE_MAX 4096

/* A tar that is made entry by entry. */
struct layer {
	struct archive *archive;
	char *data;
	size_t len;
};

static void begin(struct layer *layer)
{
	layer->data = malloc(LAYER_MAX);
	layer->len = 0;
	layer->archive = archive_write_new();
	assert_int_equal(archive_write_set_format_pax_restricted(layer->archive), ARCHIVE_OK);
	assert_int_equal(
		archive_write_open_memory(layer->archive, layer->data, LAYER_MAX, &layer->len),
		ARCHIVE_OK);
}

static struct archive_entry *make_entry(const char *path, mode_t type)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, 0755);
	archive_entry_set_mtime(entry, 1000, 5);
	return entry;
}

static void put(struct layer *layer, struct archive_entry *entry, const char *content)
{
	if (content)
		archive_entry_set_size(entry, (la_int64_t)strlen(content));
	assert_int_equal(archive_write_header(layer->archive, entry), ARCHIVE_OK);
	if (content)
		archive_write_data(layer->archive, content, strlen(content));
	archive_entry_free(entry);
}

static void put_file(struct layer *layer, const char *path, const char *content)
{
	put(layer, make_entry(path, AE_IFREG), content);
}

static void put_link(struct layer *layer, const char *path, const char *target, bool is_hard)
{
	struct archive_entry *entry = make_entry(path, is_hard ? AE_IFREG : AE_IFLNK);

	if (is_hard)
		archive_entry_set_hardlink(entry, target);
	else
		archive_entry_set_symlink(entry, target);
	put(layer, entry, NULL);
}

/* Ends the tar; its descriptor and the digest of its plain bytes. */
static int end(struct layer *layer, const char *filter, struct digest *ret_diff_id)
{
	int fd = memfd_create("layer", MFD_CLOEXEC), r = 0;

	archive_write_free(layer->archive);
	digest_of(layer->data, layer->len, ret_diff_id);
	if (filter) {
		struct archive *out = archive_write_new();
		struct archive_entry *entry = make_entry("layer", AE_IFREG);

		archive_write_set_format_raw(out);
		archive_write_add_filter_by_name(out, filter);
		archive_write_set_bytes_in_last_block(out, 1);
		archive_write_open_fd(out, fd);
		archive_write_header(out, entry);
		archive_write_data(out, layer->data, layer->len);
		archive_entry_free(entry);
		archive_write_free(out);
	} else {
		r = fd_write_full(fd, layer->data, layer->len);
	}
	assert_int_equal(r, 0);
	free(layer->data);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

struct trace {
	char text[TRACE_MAX];
	size_t len;
};

static int note_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	static const char kinds[] = {'f', 'd', 's', 'h', 'p', 'w', 'o'};
	struct trace *trace = arg;

	(void)err;
	trace->len += (size_t)snprintf(trace->text + trace->len, TRACE_MAX - trace->len,
		"%c %s%s%s", kinds[entry->kind], entry->path, entry->target[0] ? ">" : "",
		entry->target);
	for (size_t i = 0; i < entry->xattr_count; i++)
		trace->len += (size_t)snprintf(trace->text + trace->len, TRACE_MAX - trace->len,
			" %s", entry->xattrs[i].name);
	trace->len += (size_t)snprintf(trace->text + trace->len, TRACE_MAX - trace->len, "\n");
	return 0;
}

static int note_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct trace *trace = arg;

	(void)err;
	trace->len += (size_t)snprintf(trace->text + trace->len, TRACE_MAX - trace->len,
		"@%llu=%.*s\n", (unsigned long long)offset, (int)len, (const char *)data);
	return 0;
}

static int read_layer(int fd, const struct digest *diff_id, uint64_t max, struct trace *trace,
	struct layer_result *result, struct err *err)
{
	const struct layer_sink sink = {.entry = note_entry, .content = note_content, .arg = trace};
	int r;

	*trace = (struct trace){0};
	r = layer_reader_run(fd, diff_id, max, &sink, result, err);
	close(fd);
	return r;
}

static void fill(struct layer *layer)
{
	struct archive_entry *marked = make_entry("dir/marked", AE_IFREG);
	struct archive_entry *device = make_entry("dev/null", AE_IFCHR);

	begin(layer);
	put(layer, make_entry("./", AE_IFDIR), NULL);
	put(layer, make_entry("./dir/", AE_IFDIR), NULL);
	put_file(layer, "dir/file", "hello");
	put_link(layer, "dir/soft", "/etc/passwd", false);
	put_link(layer, "dir/hard", "dir/file", true);
	put_file(layer, "dir/.wh.gone", "");
	put_file(layer, "dir/sub/.wh..wh..opq", "");
	put_file(layer, ".wh.top", "");
	archive_entry_xattr_add_entry(marked, "user.note", "x", 1);
	archive_entry_xattr_add_entry(marked, "security.capability", "x", 1);
	archive_entry_xattr_add_entry(marked, "user.overlay.opaque", "y", 1);
	put(layer, marked, "");
	put(layer, device, NULL);
	put(layer, make_entry("fifo", AE_IFIFO), NULL);
}

static void entries_and_whiteouts_are_told_apart(void **state)
{
	static const char *const filters[] = {NULL, "gzip", "zstd"};

	(void)state;
	for (size_t i = 0; i < array_len(filters); i++) {
		struct layer_result result;
		struct layer layer;
		struct digest diff_id;
		struct trace trace;
		struct err err;
		int fd;

		fill(&layer);
		fd = end(&layer, filters[i], &diff_id);
		if (read_layer(fd, &diff_id, 100, &trace, &result, &err) < 0)
			fail_msg("%s: %s", filters[i] ? filters[i] : "plain", err.message);
		assert_string_equal(trace.text, "d \nd dir\nf dir/file\n@0=hello\n"
						"s dir/soft>/etc/passwd\nh dir/hard>dir/file\n"
						"w dir/gone\no dir/sub\nw top\n"
						"f dir/marked user.note\np fifo\n");
		assert_int_equal(result.devices, 1);
		assert_int_equal(result.stripped, 1);
		assert_int_equal(result.bytes, 5);
	}
}

static void another_content_than_the_config_names_is_refused(void **state)
{
	struct layer_result result;
	struct layer layer;
	struct digest diff_id;
	struct trace trace;
	struct err err;
	int fd;

	(void)state;
	fill(&layer);
	fd = end(&layer, "gzip", &diff_id);
	digest_of("x", 1, &diff_id);
	assert_true(read_layer(fd, &diff_id, 100, &trace, &result, &err) < 0);
	assert_string_equal(err.code, "digest_mismatch");
}

static void names_that_lead_out_are_refused(void **state)
{
	static const char *const bad[] = {"../x", "a/../../x", "a/..", ".wh...", ".wh..", "a/.wh."};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct layer_result result;
		struct layer layer;
		struct digest diff_id;
		struct trace trace;
		struct err err;
		int fd;

		begin(&layer);
		put_file(&layer, bad[i], "x");
		fd = end(&layer, NULL, &diff_id);
		if (read_layer(fd, &diff_id, 100, &trace, &result, &err) >= 0)
			fail_msg("%s was taken: %s", bad[i], trace.text);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void a_hard_link_that_leads_out_is_refused(void **state)
{
	struct layer_result result;
	struct layer layer;
	struct digest diff_id;
	struct trace trace;
	struct err err;
	int fd;

	(void)state;
	begin(&layer);
	put_link(&layer, "x", "../../etc/shadow", true);
	fd = end(&layer, NULL, &diff_id);
	assert_true(read_layer(fd, &diff_id, 100, &trace, &result, &err) < 0);
}

static void more_bytes_than_allowed_are_refused(void **state)
{
	struct layer_result result;
	struct layer layer;
	struct digest diff_id;
	struct trace trace;
	struct err err;
	int fd;

	(void)state;
	begin(&layer);
	put_file(&layer, "a", "12345");
	put_file(&layer, "b", "12345");
	fd = end(&layer, NULL, &diff_id);
	assert_true(read_layer(fd, &diff_id, 9, &trace, &result, &err) < 0);
	assert_int_equal(err.kind, ERR_TOO_LARGE);
}

static void an_owner_that_no_sandbox_has_is_refused(void **state)
{
	struct archive_entry *entry = make_entry("a", AE_IFREG);
	struct layer_result result;
	struct layer layer;
	struct digest diff_id;
	struct trace trace;
	struct err err;
	int fd;

	(void)state;
	begin(&layer);
	archive_entry_set_uid(entry, 65536);
	put(&layer, entry, "");
	fd = end(&layer, NULL, &diff_id);
	assert_true(read_layer(fd, &diff_id, 9, &trace, &result, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
}

static void what_is_no_tar_is_refused(void **state)
{
	struct layer_result result;
	struct digest diff_id;
	struct trace trace;
	struct err err;
	int fd = memfd_create("layer", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(fd_write_full(fd, "this is no tar at all, whatever it says", 39), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	digest_of("this is no tar at all, whatever it says", 39, &diff_id);
	assert_true(read_layer(fd, &diff_id, 9, &trace, &result, &err) < 0);
	assert_string_equal(err.code, "invalid_layer");
}

/* --- whole images in one file --- */

struct world {
	char path[64];
	int dir_fd;
	struct blob_store *store;
};

static int set_up(void **state)
{
	struct world *world = mem_new(sizeof(*world));
	struct err err;

	snprintf(world->path, sizeof(world->path), "/tmp/sandlot-images-XXXXXX");
	assert_non_null(mkdtemp(world->path));
	world->dir_fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(blob_store_open(world->dir_fd, &world->store, &err), 0);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	char command[128];

	blob_store_close(world->store);
	fd_close(world->dir_fd);
	snprintf(command, sizeof(command), "rm -rf %s", world->path);
	assert_int_equal(system(command), 0);
	free(world);
	return 0;
}

static ssize_t read_fd(void *arg, void *data, size_t size)
{
	return read(*(int *)arg, data, size);
}

static int read_image(struct world *world, struct layer *archive, const char *tag,
	struct image_manifest *manifest, struct err *err)
{
	struct digest ignored;
	int fd = end(archive, NULL, &ignored);
	const struct image_source source = {.read = read_fd, .arg = &fd};
	int r = image_archive_read(&source, tag, 1 << 20, world->store, manifest, err);

	close(fd);
	return r;
}

static void docker_save_is_read_with_its_links(void **state)
{
	static const char list[] =
		"[{\"Config\":\"config.json\",\"RepoTags\":[\"app:1\"],\"Layers\":[\"a/layer.tar\","
		"\"b/layer.tar\"]},{\"Config\":\"config.json\",\"RepoTags\":null,\"Layers\":[]}]";
	struct image_manifest manifest;
	struct layer archive;
	struct digest digest;
	struct err err;

	begin(&archive);
	put_file(&archive, "a/layer.tar", "one");
	put_link(&archive, "b/layer.tar", "../a/layer.tar", false);
	put_file(&archive, "config.json", "{}");
	put_file(&archive, "manifest.json", list);
	assert_int_equal(read_image(*state, &archive, "app:1", &manifest, &err), 0);
	digest_of("one", 3, &digest);
	assert_int_equal(manifest.layer_count, 2);
	assert_string_equal(manifest.layers[0].digest.text, digest.text);
	assert_string_equal(manifest.layers[1].digest.text, digest.text);
	digest_of("{}", 2, &digest);
	assert_string_equal(manifest.config.digest.text, digest.text);
}

static void put_blob(struct layer *archive, const char *content, struct digest *ret_digest)
{
	char name[128];

	digest_of(content, strlen(content), ret_digest);
	snprintf(name, sizeof(name), "./blobs/sha256/%s", digest_hex(ret_digest));
	put_file(archive, name, content);
}

static void fill_layout(struct layer *archive, bool has_layer)
{
	struct digest config, layer, manifest;
	char text[1024];

	begin(archive);
	put_file(archive, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
	put_blob(archive, "{}", &config);
	digest_of("layer", 5, &layer);
	if (has_layer)
		put_blob(archive, "layer", &layer);
	snprintf(text, sizeof(text),
		"{\"schemaVersion\":2,\"config\":{\"digest\":\"%s\",\"size\":2},\"layers\":[{"
		"\"digest\":\"%s\",\"size\":5}]}",
		config.text, layer.text);
	put_blob(archive, text, &manifest);
	snprintf(text, sizeof(text),
		"{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":1,\"annotations\":"
		"{"
		"\"org.opencontainers.image.ref.name\":\"v1\"}}]}",
		manifest.text);
	put_file(archive, "index.json", text);
}

static void a_layout_is_read(void **state)
{
	struct image_manifest manifest;
	struct layer archive;
	struct err err;

	fill_layout(&archive, true);
	assert_int_equal(read_image(*state, &archive, NULL, &manifest, &err), 0);
	assert_int_equal(manifest.layer_count, 1);
	fill_layout(&archive, true);
	assert_int_equal(read_image(*state, &archive, "v1", &manifest, &err), 0);
	fill_layout(&archive, true);
	assert_true(read_image(*state, &archive, "v2", &manifest, &err) < 0);
}

static void an_archive_that_lacks_a_part_is_refused(void **state)
{
	struct image_manifest manifest;
	struct layer archive;
	struct err err;

	fill_layout(&archive, false);
	assert_true(read_image(*state, &archive, NULL, &manifest, &err) < 0);
	assert_string_equal(err.code, "invalid_image_archive");
	begin(&archive);
	put_file(&archive, "readme", "no image");
	assert_true(read_image(*state, &archive, NULL, &manifest, &err) < 0);
	begin(&archive);
	put_link(&archive, "manifest.json", "manifest.json", false);
	assert_true(read_image(*state, &archive, NULL, &manifest, &err) < 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_and_whiteouts_are_told_apart),
		cmocka_unit_test(another_content_than_the_config_names_is_refused),
		cmocka_unit_test(names_that_lead_out_are_refused),
		cmocka_unit_test(a_hard_link_that_leads_out_is_refused),
		cmocka_unit_test(more_bytes_than_allowed_are_refused),
		cmocka_unit_test(an_owner_that_no_sandbox_has_is_refused),
		cmocka_unit_test(what_is_no_tar_is_refused),
		cmocka_unit_test_setup_teardown(
			docker_save_is_read_with_its_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_layout_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_archive_that_lacks_a_part_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
