/* SPDX-License-Identifier: Apache-2.0 */
#include "core/project/project_archive.h"

#include "base/disk_room.h"
#include "base/fd.h"
#include "base/format.h"
#include "store/work/store_project.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE   (128u << 10)
#define ENTRIES_MAX 200000 /* also those that become no file */

/* --- in --- */

struct importing {
	struct project_upload *upload;
	const struct project_archive_source *source;
	const char *below;
	uint64_t skipped;
	bool is_bomb;
	uint8_t input[READ_SIZE];
};

static bool is_bomb(struct archive *archive)
{
	int64_t in = archive_filter_bytes(archive, -1), out = archive_filter_bytes(archive, 0);

	return out > PROJECT_ARCHIVE_RATIO_FREE && out / PROJECT_ARCHIVE_RATIO_MAX > in;
}

static la_ssize_t read_input(struct archive *archive, void *arg, const void **data)
{
	struct importing *importing = arg;
	ssize_t n;

	if (is_bomb(archive)) {
		importing->is_bomb = true;
		archive_set_error(archive, E2BIG, "it swells too much");
		return -1;
	}
	n = importing->source->read(
		importing->source->arg, importing->input, sizeof(importing->input));
	if (n < 0)
		archive_set_error(archive, (int)-n, "the upload ended early");
	*data = importing->input;
	return n;
}

static int bad_archive(struct archive *archive, struct err *err)
{
	const char *why = archive_error_string(archive);

	return err_explain(err, ERR_INVALID, "invalid_archive", "send a tar, a tar.gz or a zip",
		"the archive cannot be read: %.160s", why ? why : "it is damaged");
}

/* The path of an entry below the directory: without "./" before it and slashes behind it. "": the root. */
static int make_path(const struct importing *importing, const char *name,
	char path[PROJECT_PATH_MAX + 1], struct err *err)
{
	const char *below = importing->below;
	size_t len;

	while (strncmp(name, "./", 2) == 0)
		name += 2 + strspn(name + 2, "/");
	if (strcmp(name, ".") == 0)
		name = "";
	/* An absolute name stays one, to be refused. */
	len = format_append(path, PROJECT_PATH_MAX + 1, 0, "%s%s%s", name[0] == '/' ? "" : below,
		below[0] && name[0] && name[0] != '/' ? "/" : "", name);
	if (len >= PROJECT_PATH_MAX)
		return err_explain(err, ERR_INVALID, "invalid_path", NULL,
			"the archive has a name that is too long: %.120s", name);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	return 0;
}

static int import_content(struct importing *importing, struct archive *archive, struct err *err)
{
	static const uint8_t zeros[4096];
	uint64_t at = 0;
	la_int64_t offset;
	const void *data;
	size_t len;
	int code, r = 0;

	while (r == 0 &&
		(code = archive_read_data_block(archive, &data, &len, &offset)) == ARCHIVE_OK) {
		/* A hole is zeros; a file that is one hole is bounded as any other. */
		while (r == 0 && at < (uint64_t)offset) {
			uint64_t hole = (uint64_t)offset - at;
			size_t n = hole < sizeof(zeros) ? (size_t)hole : sizeof(zeros);

			r = project_upload_write(importing->upload, zeros, n, err);
			at += n;
		}
		if (r == 0)
			r = project_upload_write(importing->upload, data, len, err);
		at += len;
	}
	if (r < 0)
		return r;
	return code == ARCHIVE_EOF ? 0 : bad_archive(archive, err);
}

static int import_entry(struct importing *importing, struct archive *archive,
	struct archive_entry *entry, struct err *err)
{
	const char *name = archive_entry_pathname(entry), *link = archive_entry_hardlink(entry);
	char path[PROJECT_PATH_MAX + 1], from[PROJECT_PATH_MAX + 1];
	int r;

	if (!name)
		return err_explain(err, ERR_INVALID, "invalid_path", NULL,
			"the archive has a name that is not UTF-8");
	r = make_path(importing, name, path, err);
	if (r < 0)
		return r;
	if (link) {
		r = make_path(importing, link, from, err);
		return r < 0 ? r : project_upload_copy(importing->upload, path, from, err);
	}
	if (archive_entry_filetype(entry) != AE_IFREG) {
		importing->skipped += archive_entry_filetype(entry) != AE_IFDIR;
		return 0;
	}
	r = project_upload_begin(
		importing->upload, path, (archive_entry_perm(entry) & 0111) != 0, err);
	if (r == 0)
		r = import_content(importing, archive, err);
	return r < 0 ? r : project_upload_end(importing->upload, err);
}

static int import_entries(struct importing *importing, struct archive *archive, struct err *err)
{
	struct archive_entry *entry;
	int code, r;

	for (unsigned seen = 0;; seen++) {
		code = archive_read_next_header(archive, &entry);
		if (code == ARCHIVE_EOF)
			return 0;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return bad_archive(archive, err);
		if (seen == ENTRIES_MAX)
			return err_explain(err, ERR_TOO_LARGE, "archive_too_large", NULL,
				"the archive has more than %d entries", ENTRIES_MAX);
		r = import_entry(importing, archive, entry, err);
		if (r < 0)
			return r;
	}
}

/*
 * Which names of a zip are UTF-8 is said in it, and libarchive reads and writes them as what the thread's locale says. The
 * one of before; end_utf8() goes back to it.
 */
struct utf8 {
	locale_t locale, before;
};

static struct utf8 begin_utf8(void)
{
	struct utf8 utf8 = {.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL)};

	if (utf8.locale)
		utf8.before = uselocale(utf8.locale);
	return utf8;
}

static void end_utf8(struct utf8 utf8)
{
	if (!utf8.locale)
		return;
	uselocale(utf8.before);
	freelocale(utf8.locale);
}

int project_archive_import(struct project_upload *upload,
	const struct project_archive_source *source, const char *below, uint64_t *ret_skipped,
	struct err *err)
{
	auto_free struct importing *importing = mem_new(sizeof(*importing));
	struct utf8 utf8 = begin_utf8();
	struct archive *archive = archive_read_new();
	int r;

	if (!archive)
		abort();
	importing->upload = upload;
	importing->source = source;
	importing->below = below;
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_zstd(archive);
	archive_read_support_format_tar(archive);
	archive_read_support_format_zip_streamable(archive);
	archive_read_support_format_empty(archive);
	/* Names are bytes: without this, libarchive would refuse what its locale cannot say. */
	archive_read_set_options(archive, "tar:hdrcharset=BINARY");
	if (archive_read_open(archive, importing, NULL, read_input, NULL) != ARCHIVE_OK)
		r = bad_archive(archive, err);
	else
		r = import_entries(importing, archive, err);
	if (r < 0 && importing->is_bomb)
		r = err_explain(err, ERR_TOO_LARGE, "archive_too_large",
			"send it without compression, or compressed less",
			"the archive unpacks to more than %d times its size",
			PROJECT_ARCHIVE_RATIO_MAX);
	archive_read_free(archive);
	end_utf8(utf8);
	if (r == 0)
		*ret_skipped = importing->skipped;
	return r;
}

/* --- out --- */

static int choose_tar(struct archive *archive)
{
	archive_write_set_format_gnutar(archive);
	return archive_write_set_options(archive, "hdrcharset=BINARY");
}

static int choose_tar_gz(struct archive *archive)
{
	archive_write_add_filter_gzip(archive);
	return choose_tar(archive);
}

static const struct project_archive_format formats[] = {
	{"tar", ".tar", "application/x-tar", choose_tar},
	{"tar.gz", ".tar.gz", "application/gzip", choose_tar_gz},
	{"zip", ".zip", "application/zip", archive_write_set_format_zip},
};

const struct project_archive_format *project_archive_format_find(const char *name)
{
	for (size_t i = 0; i < array_len(formats); i++) {
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	}
	return NULL;
}

struct exporting {
	struct projects *projects;
	const struct project_record *record;
	struct archive *archive;
	struct archive_entry *entry;
	uint8_t *buffer;
	int fd;
	int r;
	struct err *err;
};

static int copy_content(struct exporting *exporting, int fd, uint64_t size)
{
	while (size > 0) {
		ssize_t n = read(fd, exporting->buffer, size < READ_SIZE ? size : READ_SIZE);

		if (n <= 0)
			return err_set(exporting->err, ERR_INTERNAL,
				"the content of a file is shorter than it was");
		if (archive_write_data(exporting->archive, exporting->buffer, (size_t)n) != n)
			return err_set(exporting->err, ERR_NO_SPACE, "write the archive: %.160s",
				archive_error_string(exporting->archive));
		size -= (uint64_t)n;
	}
	return 0;
}

static bool export_file(const struct project_file *file, void *arg)
{
	struct exporting *exporting = arg;
	const struct projects_config *config = projects_config_of(exporting->projects);
	struct archive_entry *entry = exporting->entry;
	auto_fd int fd = -1;
	int r = disk_room_check(
		exporting->fd, config->disk_reserve, file->bytes + READ_SIZE, exporting->err);

	if (r == 0)
		r = projects_open_file(
			exporting->projects, exporting->record->id, file, &fd, exporting->err);
	if (r == 0) {
		archive_entry_clear(entry);
		archive_entry_copy_pathname(entry, file->path);
		archive_entry_set_filetype(entry, AE_IFREG);
		archive_entry_set_perm(entry, file->is_executable ? 0755 : 0644);
		archive_entry_set_mtime(entry, (time_t)(file->created_at_ms / 1000), 0);
		archive_entry_set_size(entry, (la_int64_t)file->bytes);
		if (archive_write_header(exporting->archive, entry) < ARCHIVE_WARN)
			r = err_set(exporting->err, ERR_INTERNAL, "write the archive: %.160s",
				archive_error_string(exporting->archive));
	}
	if (r == 0)
		r = copy_content(exporting, fd, file->bytes);
	exporting->r = r;
	return r == 0;
}

int project_archive_export(struct projects *projects, const struct project_record *record,
	const struct project_archive_format *format, int fd, struct err *err)
{
	struct utf8 utf8 = begin_utf8();
	auto_free uint8_t *buffer = mem_new(READ_SIZE);
	struct exporting exporting = {.projects = projects,
		.record = record,
		.archive = archive_write_new(),
		.entry = archive_entry_new(),
		.buffer = buffer,
		.fd = fd,
		.err = err};
	int r = 0;

	if (!exporting.archive || !exporting.entry)
		abort();
	format->choose(exporting.archive);
	archive_write_set_bytes_in_last_block(exporting.archive, 512);
	if (archive_write_open_fd(exporting.archive, fd) != ARCHIVE_OK)
		r = err_set(err, ERR_INTERNAL, "begin an archive");
	if (r == 0)
		r = store_project_file_list(projects_config_of(projects)->store, record->id, "",
			UINT_MAX, export_file, &exporting, err);
	if (r == 0)
		r = exporting.r;
	if (archive_write_close(exporting.archive) != ARCHIVE_OK && r == 0)
		r = err_set(err, ERR_NO_SPACE, "write the end of the archive");
	archive_write_free(exporting.archive);
	archive_entry_free(exporting.entry);
	end_utf8(utf8);
	return r;
}
