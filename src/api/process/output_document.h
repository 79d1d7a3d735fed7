/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has printed, as one document and at once: for clients that ask again instead of following. */
#pragma once

#include "api/process/output_events.h"

/* Whether a client takes JSON and no events. */
bool output_document_is_wanted(const struct request *req);

/*
 * {"status","exit_code","stdout","stderr","truncated","next","more"} from spec->from on, which is at most one past the
 * end of the log: as many bytes as an exec that is waited for gives. The caller has checked that.
 */
void output_document_answer(struct request *req, const struct output_events_spec *spec);
