/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and ends as JSON. */
#pragma once

#include "core/process/process.h"

struct api;

json_t *process_body_encode(const struct api *api, const struct process_record *record);

/* The same for a list: only the beginning of a long command. */
json_t *process_body_encode_short(const struct api *api, const struct process_record *record);

/* exit_code, duration_ms, termination: of an exec, and of the event `exit`. */
json_t *process_body_encode_end(const struct process_end *end);

/* The same of one that is only remembered. */
struct process_end process_body_end(const struct process_record *record);
