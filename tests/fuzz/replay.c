/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz harness over the files, and the files in the directories, that are named as
 * arguments; then over every prefix of each and with every bit of its first bytes turned: a little
 * fuzzing without a fuzzer. For builds without libFuzzer.
 */
#include "base/buf.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX    (4u * 1024 * 1024)
#define VARIANTS_MAX 4096 /* bytes of an input that are varied */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of exactly that size, so that a sanitizer sees the first byte too far. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = mem_new(size ? size : 1);

	if (size > 0)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void run_variants(struct buf *input)
{
	size_t varied = input->len < VARIANTS_MAX ? input->len : VARIANTS_MAX;

	run(input->data, input->len);
	for (size_t i = 0; i < varied; i++) {
		run(input->data, i);
		for (int bit = 0; bit < 8; bit++) {
			input->data[i] ^= (uint8_t)(1 << bit);
			run(input->data, input->len);
			input->data[i] ^= (uint8_t)(1 << bit);
		}
	}
}

static int idempotency_file(const char *path)
{
	struct buf input = BUF_INIT(INPUT_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	while (fd >= 0 && buf_reserve(&input, 65536) == 0) {
		n = read(fd, input.data + input.len, 65536);
		if (n <= 0)
			break;
		input.len += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (n == 0)
		run_variants(&input);
	else
		fprintf(stderr, "cannot read %s\n", path);
	buf_fini(&input);
	return n == 0;
}

static int idempotency(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return idempotency_file(path);
	while ((entry = readdir(dir))) {
		char *file;

		if (entry->d_name[0] == '.')
			continue;
		file = mem_printf("%s/%s", path, entry->d_name);
		count += idempotency_file(file);
		free(file);
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++)
		count += idempotency(argv[i]);
	printf("%d inputs\n", count);
	return count > 0 ? 0 : 1;
}
