/* SPDX-License-Identifier: Apache-2.0 */
/* What a helper puts comes out as it is, however it is cut into pieces. */
#include "agent/files/helper_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define STEP 977 /* no divisor of the sizes of buffers */
#define MOST 200000

static void pieces_of_any_size_come_out_one_after_the_other(void **state)
{
	uint8_t *sent = mem_new(MOST), *got = mem_new(MOST);

	(void)state;
	for (size_t i = 0; i < MOST; i++)
		sent[i] = (uint8_t)(i * 31 / 7);
	for (size_t first = 0; first < MOST; first += STEP) {
		int fd = memfd_create("out", MFD_CLOEXEC);
		struct helper_io io;

		helper_io_init(&io, fd);
		helper_io_put(&io, sent, first);
		helper_io_put(&io, sent + first, MOST - first);
		assert_int_equal(helper_io_flush(&io), 0);
		assert_false(io.out.failed);
		helper_io_fini(&io);
		assert_int_equal(lseek(fd, 0, SEEK_END), MOST);
		assert_int_equal(pread(fd, got, MOST, 0), MOST);
		assert_memory_equal(got, sent, MOST);
		close(fd);
	}
	free(sent);
	free(got);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_any_size_come_out_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
