/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/request_redirect.h"

#include "http/server/request/event_filter.h"
#include "http/server/request/request_answer.h"
#include "http/server/request/request_private.h"
#include "http/server/server_private.h"

#include <string.h>

static int run(struct request *req, void *arg, struct err *err)
{
	route_handler handle = req->redirect_handle;

	(void)arg;
	return handle(req, req->server->config.context, err);
}

int request_redirect(struct request *req, const struct request_redirection *to, struct err *err)
{
	const struct server_config *config = &req->server->config;
	char *raw = arena_strndup(&req->arena, to->target, strlen(to->target));
	struct router_match match;
	struct principal same = {0};
	struct target target;
	int r = target_parse(raw, &req->arena, &target, err);

	if (r == 0)
		r = router_find(req->server->router, method_parse(to->method), &target, &req->arena,
			&match, err);
	if (r < 0)
		return r;
	req->target = target;
	req->match = match;
	req->path = arena_strndup(&req->arena, raw, strcspn(raw, "?"));
	req->headers.count = 0;
	if (to->accept)
		req->headers.list[req->headers.count++] = (struct header){"Accept", to->accept};
	json_decref(req->json);
	req->json = to->body ? json_deep_copy(to->body) : json_object();
	req->redirect_handle = to->handle ? to->handle : match.route->handle;
	req->translate = to->translate;
	req->translate_arg = to->arg;
	req->retell = to->retell;
	req->retell_event = to->retell_event;
	req->stream_type = to->stream_type;
	req->passes_content = to->passes_content;
	/* Refused, it is accounted for as what it wanted to be. */
	if (config->admit(config->context, &req->credential, match.route, &same, err) < 0) {
		request_answer_error(req, err);
		return 0;
	}
	request_hold(req, NULL, NULL);
	request_continue(req, run, NULL);
	return 0;
}

/* The answer as JSON, NULL for an empty one. False if it is something else. */
static bool read_answer(const struct request *req, json_t **ret_body)
{
	const char *text = req->answer.bytes ? req->answer.bytes : req->answer.lasting;

	/* What a program printed may have a NUL. */
	*ret_body = req->answer.len == 0 ? NULL
					 : json_loadb(text, req->answer.len,
						   JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	return *ret_body || req->answer.len == 0;
}

void *request_redirect_arg(const struct request *req)
{
	return req->translate_arg;
}

/* An answer that is no JSON goes out as it is, or event by event in other words. */
static bool is_passed(struct request *req)
{
	if (req->answer.kind == ANSWER_FD)
		return req->passes_content;
	if (req->answer.kind != ANSWER_STREAM || !req->retell_event)
		return false;
	req->event_filter = event_filter_new(req->retell_event, req->translate_arg);
	req->answer.type = req->stream_type;
	return true;
}

void request_redirect_translate(struct request *req)
{
	json_t *body = NULL;
	struct err err;
	int status;

	if (is_passed(req))
		return;
	if (req->answer.kind != ANSWER_BYTES || !read_answer(req, &body)) {
		err_set(&err, ERR_INTERNAL, "%s gives no answer that can be told here",
			req->match.route->path);
		request_answer_error(req, &err);
		(void)!read_answer(req, &body);
	}
	status = req->answer.status;
	if (req->retell) {
		req->retell(req, req->translate_arg, status, body);
		return;
	}
	body = req->translate(req->translate_arg, &status, body);
	request_answer_json(req, status, body);
}
