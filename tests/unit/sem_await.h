/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a semaphore, with a deadline that fails the test. */
#pragma once

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#define SEM_AWAIT_SECONDS 30

static inline void sem_await(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SEM_AWAIT_SECONDS;
	while (sem_timedwait(sem, &until) < 0)
		assert_int_equal(errno, EINTR);
}
