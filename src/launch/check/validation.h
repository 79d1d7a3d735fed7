/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would keep an app from running, found before it is tried: a table of rules, each a look at its files. What is
 * fixed is fixed in the copy that is started; the project's own files stay as they are.
 */
#pragma once

#include "launch/app/detection.h"

/* Where the config is that is made for Vite, in the directory of its part: one of the fixes. */
#define VALIDATION_VITE_CONFIG ".sandlot/vite.config.mjs"

struct validation {
	/* array of {"rule", "severity", "file", "line", "message", "fix", "diff"}; the last four may be null */
	json_t *findings;
	json_t *fixes; /* object: the content that files of the copy get, by path */
	bool has_error;
};

void validation_make(const struct file_set *set, const struct detection *detection,
	struct validation *ret_validation);
void validation_fini(struct validation *validation);
