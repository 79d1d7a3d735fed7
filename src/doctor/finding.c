/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>

void finding_ok(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	*f = (struct finding){.level = FINDING_OK};
	va_start(ap, fmt);
	vsnprintf(f->fact, sizeof(f->fact), fmt, ap);
	va_end(ap);
}

void finding_problem(struct finding *f, enum finding_level level, const char *why, const char *mend,
	const char *fmt, ...)
{
	va_list ap;

	*f = (struct finding){.level = level, .why = why};
	snprintf(f->mend, sizeof(f->mend), "%s", mend);
	va_start(ap, fmt);
	vsnprintf(f->fact, sizeof(f->fact), fmt, ap);
	va_end(ap);
}
