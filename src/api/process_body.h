/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and ends as JSON. */
#pragma once

#include "core/process.h"

json_t *process_body_encode(const struct process_record *record);

/* exit_code, duration_ms, termination: of an exec, and of the event `exit`. */
json_t *process_body_encode_end(const struct process_end *end);

/* The same of one that is only remembered. */
struct process_end process_body_end(const struct process_record *record);

/* null, if it has not ended. */
json_t *process_body_encode_termination(const struct termination *termination);
