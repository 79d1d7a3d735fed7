/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/message/refusal.h"

#define CROWDED_WAIT_S 5 /* when to come again, where there are too many */

/* --- those who ask --- */

const struct proxy_refusal refusal_bad_request = {
	.status = 400,
	.code = "bad_request",
	.title = REFUSAL_BAD_REQUEST,
	.message = "The request is not proper HTTP.",
};

const struct proxy_refusal refusal_bad_body = {
	.status = 400,
	.code = "bad_request",
	.title = REFUSAL_BAD_REQUEST,
	.message = "The body is not proper HTTP.",
};

const struct proxy_refusal refusal_head_too_long = {
	.status = 431,
	.code = "head_too_long",
	.title = REFUSAL_BAD_REQUEST,
	.message = "The head of the request is too long.",
};

const struct proxy_refusal refusal_request_timeout = {
	.status = 408,
	.code = "request_timeout",
	.title = REFUSAL_BAD_REQUEST,
	.message = "The rest of the request did not come in time.",
};

/* --- too many --- */

const struct proxy_refusal refusal_source_crowds = {
	.status = 429,
	.code = "too_many_connections",
	.title = "Too many connections",
	.message = "Your address has as many connections to previews as it may.",
	.remediation = "Close some of them, or come again in a moment.",
	.wait_s = CROWDED_WAIT_S,
};

const struct proxy_refusal refusal_source_hurries = {
	.status = 429,
	.code = "too_many_requests",
	.title = "Too many requests",
	.message = "Your address asks for more a second than it may.",
	.remediation = "Ask again more slowly.",
	/* and wait_s as it comes */
};

const struct proxy_refusal refusal_key_crowded = {
	.status = 503,
	.code = "preview_crowded",
	.title = "Too many visitors",
	.message = "What is previewed here has as many connections as it may.",
	.remediation = "Come again in a moment.",
	.wait_s = CROWDED_WAIT_S,
};

const struct proxy_refusal refusal_overloaded = {
	.status = 503,
	.code = "overloaded",
	.title = "Too many visitors",
	.message = "There are too many connections to previews.",
	.remediation = "Come again in a moment.",
	.wait_s = CROWDED_WAIT_S,
};

const struct proxy_refusal refusal_wake_timeout = {
	.status = 503,
	.code = "wake_timeout",
	.title = "The start takes long",
	.message = "What is previewed here is still being started, or waits for its turn.",
	.remediation = "Come again in a moment.",
	.wait_s = CROWDED_WAIT_S,
};

/* --- the app --- */

#define BAD_ANSWER "The app gives no proper answer"

const struct proxy_refusal refusal_bad_answer = {
	.status = 502,
	.code = "bad_answer",
	.title = BAD_ANSWER,
	.message = "What listens on this port does not answer with proper HTTP.",
};

const struct proxy_refusal refusal_bad_status = {
	.status = 502,
	.code = "bad_answer",
	.title = BAD_ANSWER,
	.message = "The app answers with a status that is none.",
};

const struct proxy_refusal refusal_hints_only = {
	.status = 502,
	.code = "bad_answer",
	.title = BAD_ANSWER,
	.message = "The app answers with hints only.",
};

const struct proxy_refusal refusal_changed_protocol = {
	.status = 502,
	.code = "bad_answer",
	.title = BAD_ANSWER,
	.message = "The app changed the protocol without being asked.",
};

const struct proxy_refusal refusal_no_answer = {
	.status = 502,
	.code = "no_answer",
	.title = "The app gives no answer",
	.message = "The app closed the connection without an answer.",
};

const struct proxy_refusal refusal_answer_timeout = {
	.status = 504,
	.code = "answer_timeout",
	.title = "The app does not answer",
	.message = "The app took the request, but did not begin to answer in time.",
	.remediation = "An operator gives apps more time with --preview-timeout.",
};
