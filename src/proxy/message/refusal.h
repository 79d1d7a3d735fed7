/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the proxy refuses a request, in words for the client. (request_check.h has what is wrong with
 * a head.)
 */
#pragma once

#include "proxy/message/proxy_way.h"

#define REFUSAL_BAD_REQUEST "This request cannot be passed on"

/* Of those who ask. */
extern const struct proxy_refusal refusal_bad_request, refusal_bad_body, refusal_head_too_long,
	refusal_request_timeout;

/* There are too many. */
extern const struct proxy_refusal refusal_source_crowds, refusal_source_hurries,
	refusal_key_crowded, refusal_overloaded, refusal_wake_timeout;

/* Of the app. */
extern const struct proxy_refusal refusal_bad_answer, refusal_bad_status, refusal_hints_only,
	refusal_changed_protocol, refusal_no_answer, refusal_answer_timeout;
