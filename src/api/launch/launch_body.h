/* SPDX-License-Identifier: Apache-2.0 */
/* Launches in JSON: as they are asked for, and as they are told. */
#pragma once

#include "api/api.h"
#include "model/work/launch_record.h"

json_t *launch_to_json(const struct api *api, const struct launch_record *record);

/* Answers with the stages of a launch as events, from where the client asks to go on. */
int launch_events_answer(struct request *req, struct api *api, const struct owner *owner,
	const char *id, struct err *err) must_check;
