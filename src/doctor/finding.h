/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of doctor found: a fact, and if it is a problem why it matters and what mends it. */
#pragma once

enum finding_level { FINDING_OK, FINDING_WARN, FINDING_FAIL };

struct finding {
	enum finding_level level;
	char fact[320];
	const char *why; /* NULL if all is well */
	char mend[256];	 /* the exact command; "" if there is none */
};

/* Set a finding; the last of each pair may have printf arguments. */
void finding_ok(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_problem(struct finding *f, enum finding_level level, const char *why, const char *mend,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
