/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel and the system say in files, below the root of a host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct host {
	int root_fd; /* "/" */
	bool is_root;
	unsigned kernel_major;
	unsigned kernel_minor;
	char kernel[65]; /* uname -r */
};

/* A file of text, without the newlines at its end; NULL (and no complaint) if it is not there. */
const char *host_file_read(const struct host *host, const char *path, char *text, size_t size);

/* The number in a file; `absent` if it is not there. */
long long host_file_number(const struct host *host, const char *path, long long absent);

/* Whether a word is one of the words of text, between spaces, commas or newlines. */
bool host_file_has_word(const char *text, const char *word);
