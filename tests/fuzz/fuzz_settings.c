/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file. */
#include "daemon/settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* What is set lives as long as the process, so every input leaves something behind. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings settings;
	struct err err = {0};
	char program[] = "sandlotd", flag[] = "--config", path[64];
	char *argv[] = {program, flag, path, NULL};
	int file = memfd_create("settings", MFD_CLOEXEC);

	assert(write(file, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (settings_read(3, argv, &settings, &err) < 0) {
		assert(err.kind == ERR_INVALID && err.message[0]);
	} else {
		assert(settings.data_dir && settings.api_bind && settings.log_level);
		assert(settings.workers > 0);
	}
	close(file);
	return 0;
}
