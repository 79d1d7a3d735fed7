/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an app is made of, by its files: runtimes, frameworks and services, each with why that is thought, and the parts
 * that are started. Nothing is run, and nothing that is found is trusted further than to start it in a sandbox.
 *
 * An app has at most one backend and one frontend. They are looked for at the root, then in directories whose names
 * are usual. `sandlot.json` of the app says otherwise, and a request has the last word:
 *
 *   {"frontend": {"directory", "framework", "entry", "command", "install", "port"}, "backend": {...}, "services": [names]}
 *
 * With false in the place of a part there is none, whatever was found. What was said otherwise is told beside what was found.
 */
#pragma once

#include "launch/app/app_part.h"
#include "launch/app/app_settings.h"
#include "launch/app/file_set.h"

struct detection {
	struct app_part parts[ROLE_COUNT];
	bool has_part[ROLE_COUNT];
	json_t *document; /* {"runtimes", "frameworks", "services", "parts", "overrides"}: owned */
	struct app_settings settings; /* with what is wrong in them */
};

/*
 * The overrides of a request are an object as above, or NULL. ERR_INVALID for what they say that cannot be; what sandlot.json
 * says that cannot be is a problem of the settings, and none of it is followed.
 */
int detection_make(const struct file_set *set, const json_t *overrides,
	struct detection *ret_detection, struct err *err) must_check;
void detection_fini(struct detection *detection);

/* The part whose port is the preview's; NULL if there is none. */
const struct app_part *detection_primary(const struct detection *detection);

/* Whether a list of Python's requirements, or the like of it, names a package. */
bool detection_names_package(const char *text, const char *package);
