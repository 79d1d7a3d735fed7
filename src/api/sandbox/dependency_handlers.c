/* SPDX-License-Identifier: Apache-2.0 */
/* Packages that a sandbox has beside its template. */
#include "api/handlers.h"
#include "api/sandbox/dependency_body.h"
#include "core/dependency/dependencies.h"

#include <stdio.h>

static json_t *describe(struct api *api, struct sandbox *sandbox)
{
	struct sandbox_record record;
	json_t *answer;

	sandbox_read(sandbox, &record);
	answer = dependencies_describe(api->engine, &record);
	sandbox_record_fini(&record);
	return answer;
}

HANDLER(dependency_get)
{
	struct api *api = context;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		request_answer_json(req, 200, describe(api, sandbox));
	return r;
}

HANDLER(dependency_add)
{
	struct api *api = context;
	auto_free struct dependency_parts *parts = mem_new(sizeof(*parts));
	struct dependency_body body = {0};
	struct dependency_spec spec;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&dependency_body_fields, &body);
	if (r == 0)
		r = fields_decode(&dependency_body_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	spec = dependency_body_decode(&body, parts);
	r = dependencies_ask(sandbox, &spec, err);
	if (r == 0)
		request_answer_json(req, 202, describe(api, sandbox));
	return r;
}
