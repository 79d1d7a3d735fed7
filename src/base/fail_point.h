/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named places at which a test can end, stop or fail this process. They exist only in builds with
 * the meson option fail_points; in all others a call compiles to nothing.
 *
 * The processes of one data directory share a file, run/fail_points, that holds a struct
 * fail_point_row for each name. A test arms a point by writing into its row, and reads there how
 * often the point was reached. An armed point acts once: the process disarms the point first, so
 * that its successor lives.
 *
 * A name is "<operation>.<what was just done>". All names are in the table of fail_point.c; a call
 * with any other name aborts, and tests/e2e/fail_points.test.mjs reaches each of them.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

#define FAIL_POINT_FILE	  "run/fail_points" /* below the data directory */
#define FAIL_POINT_STATUS 99		    /* with which a process ends at a point */

enum fail_point_action { FAIL_POINT_NONE, FAIL_POINT_CRASH, FAIL_POINT_STOP, FAIL_POINT_FAIL };

/* The layout in the file. */
struct fail_point_row {
	char name[40];
	uint32_t can_fail; /* whether the call is one of fail_point_check() */
	_Atomic uint32_t hits;
	_Atomic uint32_t action; /* enum fail_point_action */
	_Atomic uint32_t skip;	 /* how many hits pass before the action is taken */
	uint32_t errnum;	 /* for FAIL_POINT_FAIL */
	uint32_t acted_pid;	 /* of the process that took the last action, as it knows itself */
};

#ifdef SANDLOT_FAIL_POINTS

/* Makes the file if it is missing. Without it, as before this call, no point does anything. */
void fail_point_open(const char *data_dir);
/* The process may end or stop here. */
void fail_point(const char *name);
/* Does the same, and may make the step before it fail. */
int fail_point_check(const char *name, struct err *err);

#else

static inline void fail_point_open(const char *data_dir)
{
	(void)data_dir;
}

static inline void fail_point(const char *name)
{
	(void)name;
}

static inline int fail_point_check(const char *name, struct err *err)
{
	(void)name;
	(void)err;
	return 0;
}

#endif
