/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What came of an execution: gathered from the log of its process, in which its output and its results stand in the
 * order in which they were written. Each part has a bound, and `truncated` names those that were cut.
 */
#pragma once

#include "core/execution/language.h"
#include "core/output/output_log.h"
#include "core/process/process.h"
#include "model/work/execution_record.h"

#define OUTCOME_RESULT_MAX   (1u << 20) /* bytes of JSON of a result, */
#define OUTCOME_DISPLAY_MAX  (4u << 20) /* of one thing that is shown, */
#define OUTCOME_DISPLAYS_MAX (8u << 20) /* of all of them, */
#define OUTCOME_STREAM_MAX   (1u << 20) /* of stdout, and of stderr */

/* When it went through its stations, by the steady clock; 0: it never came there. */
struct outcome_times {
	uint64_t asked_us, sent_us, begun_us, ended_us;
};

/* What became of the state of a context. */
enum outcome_state { OUTCOME_STATELESS, OUTCOME_KEPT, OUTCOME_LOST };

struct outcome_input {
	const struct execution_record *record;
	const struct language *language;
	struct output_log *log; /* NULL: there is none */
	uint64_t from, to;	/* its part of the log */
	const struct process_end *end;
	const char *failure; /* why nothing is known of its end; NULL: that is in `end` */
	struct outcome_times times;
	const char *start; /* "warm" or "cold"; NULL: that is not told */
	enum outcome_state state;
	json_t *artifacts; /* taken over */
	bool is_artifacts_cut;
};

/* Makes the outcome; *ret_status is how it ended. */
json_t *outcome_make(struct outcome_input *input, enum execution_status *ret_status);
