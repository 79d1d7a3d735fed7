/* SPDX-License-Identifier: Apache-2.0 */
/* Run at build time: prints the blocks of a file that are not zero as the arrays of ext4_image.c. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <fcntl.h>

#define BLOCK	   4096
#define BLOCKS_MAX 1024

static bool is_zero(const unsigned char *block)
{
	return block[0] == 0 && memcmp(block, block + 1, BLOCK - 1) == 0;
}

/* The numbers of the blocks that hold something. Holes are skipped: the file is large. */
static size_t find_blocks(int fd, off_t at[BLOCKS_MAX])
{
	unsigned char block[BLOCK];
	size_t count = 0;
	off_t offset = 0;

	while (count < BLOCKS_MAX && (offset = lseek(fd, offset, SEEK_DATA)) >= 0) {
		offset -= offset % BLOCK;
		if (pread(fd, block, BLOCK, offset) == BLOCK && !is_zero(block))
			at[count++] = offset / BLOCK;
		offset += BLOCK;
	}
	return count;
}

int main(int argc, char *argv[])
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	unsigned char block[BLOCK];
	off_t at[BLOCKS_MAX];
	size_t count;

	if (fd < 0)
		return 1;
	count = find_blocks(fd, at);
	if (count == 0 || count == BLOCKS_MAX)
		return 1;
	printf("#include <stdint.h>\n#define IMAGE_BLANK_BLOCK %d\n", BLOCK);
	printf("static const uint32_t image_blank_at[] = {");
	for (size_t i = 0; i < count; i++)
		printf("%lld,", (long long)at[i]);
	printf("};\nstatic const unsigned char image_blank[%zu][%d] = {\n", count, BLOCK);
	for (size_t i = 0; i < count; i++) {
		if (pread(fd, block, BLOCK, at[i] * BLOCK) != BLOCK)
			return 1;
		printf("{");
		for (size_t j = 0; j < BLOCK; j++)
			printf("%u,", block[j]);
		printf("},\n");
	}
	printf("};\n");
	return fflush(stdout) == 0 ? 0 : 1;
}
