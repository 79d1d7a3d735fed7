/* SPDX-License-Identifier: Apache-2.0 */
/* Read by lint.sh before each file: the analyzer sees no other, and must be told that none of these succeeds. */
#include "base/err.h"

#define err_set(...)	 (err_set(__VA_ARGS__), -5)
#define err_explain(...) (err_explain(__VA_ARGS__), -5)
#define err_sys(...)	 (err_sys(__VA_ARGS__), -5)
#define err_from(...)	 (err_from(__VA_ARGS__), -5)
