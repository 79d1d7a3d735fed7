/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot.json of an app: what its author says otherwise than detection finds (detection.h). What is wrong in it is kept
 * as a list of problems, which validation tells; a file with an error is not followed at all.
 */
#pragma once

#include "launch/app/file_set.h"

#define APP_SETTINGS_FILE "sandlot.json"

struct app_settings {
	json_t *said;	  /* an object that can be followed; NULL: there is none */
	json_t *problems; /* array of {"is_error", "line", "message"}; line 0: the file as a whole */
};

void app_settings_read(const struct file_set *set, struct app_settings *ret_settings);
void app_settings_fini(struct app_settings *settings);

/* What it says cannot be after all. */
void app_settings_refuse(struct app_settings *settings, const char *message);
