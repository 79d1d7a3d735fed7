/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive, loaded by the one command that needs it.
 *
 * Linking it would cost every start of the program 1.7 ms of 6.1 (it brings libxml2 and ICU along,
 * measured on Debian 12), and of all commands only the copy of a directory uses it. The header's
 * prototypes are still what the compiler checks each call against.
 */
#pragma once

#include "base/err.h"

#include <archive.h>
#include <archive_entry.h>

#define ARCHIVE_LIBRARY_FUNCTIONS(X)                                                               \
	X(archive_entry_filetype)                                                                  \
	X(archive_entry_free)                                                                      \
	X(archive_entry_hardlink)                                                                  \
	X(archive_entry_mtime)                                                                     \
	X(archive_entry_mtime_nsec)                                                                \
	X(archive_entry_new2)                                                                      \
	X(archive_entry_pathname)                                                                  \
	X(archive_entry_perm)                                                                      \
	X(archive_entry_set_gname)                                                                 \
	X(archive_entry_set_pathname)                                                              \
	X(archive_entry_set_uname)                                                                 \
	X(archive_entry_size)                                                                      \
	X(archive_entry_symlink)                                                                   \
	X(archive_error_string)                                                                    \
	X(archive_read_data)                                                                       \
	X(archive_read_data_block)                                                                 \
	X(archive_read_disk_can_descend)                                                           \
	X(archive_read_disk_descend)                                                               \
	X(archive_read_disk_new)                                                                   \
	X(archive_read_disk_open)                                                                  \
	X(archive_read_disk_set_behavior)                                                          \
	X(archive_read_disk_set_symlink_hybrid)                                                    \
	X(archive_read_free)                                                                       \
	X(archive_read_new)                                                                        \
	X(archive_read_next_header)                                                                \
	X(archive_read_next_header2)                                                               \
	X(archive_read_open)                                                                       \
	X(archive_read_set_options)                                                                \
	X(archive_read_support_format_tar)                                                         \
	X(archive_write_close)                                                                     \
	X(archive_write_data)                                                                      \
	X(archive_write_free)                                                                      \
	X(archive_write_header)                                                                    \
	X(archive_write_new)                                                                       \
	X(archive_write_open)                                                                      \
	X(archive_write_set_bytes_per_block)                                                       \
	X(archive_write_set_format_pax_restricted)

struct archive_library {
#define X(function) __typeof__(function) *function;
	ARCHIVE_LIBRARY_FUNCTIONS(X)
#undef X
};

/* Stays loaded until the process ends. */
int archive_library_load(struct archive_library *ret, struct err *err) must_check;
