/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why nothing answers on a port of a sandbox that runs: its app may still be starting, its start command failed,
 * ended or was ended, or it listens elsewhere.
 */
#pragma once

#include "core/engine/sandbox_handle.h"

#define PREVIEW_OUTPUT_MAX 2000 /* bytes of the app's output that are shown */
#define PREVIEW_PORTS_MAX  8	/* ports that are named */
#define PREVIEW_TEXT_MAX   768

struct preview_question {
	const struct sandbox_record *record;
	uint16_t port;
	const struct err *why; /* the failure to connect */
	bool is_for_all;       /* whoever asks may be anybody: nothing of the inside is told */
	bool wants_page;       /* a person looks, who is told that the app is starting */
};

struct preview_diagnosis {
	bool is_starting; /* the app may still come up by itself */
	bool may_pass;	  /* it is worth looking again */
	const char *code, *title;
	char message[PREVIEW_TEXT_MAX], remedy[PREVIEW_TEXT_MAX]; /* an empty remedy: none */
	bool knows_listening;
	uint16_t listening[PREVIEW_PORTS_MAX]; /* ports that would answer */
	size_t listening_count;
	uint8_t output[PREVIEW_OUTPUT_MAX]; /* the last that the app wrote, as it is */
	size_t output_len;
};

/* Whether a request that can wait should: the app is starting, or takes no connections at present. */
bool preview_diagnosis_may_pass(struct sandbox *sandbox, const struct preview_question *question);

void preview_diagnosis_make(struct sandbox *sandbox, const struct preview_question *question,
	struct preview_diagnosis *ret_diagnosis);
