/* SPDX-License-Identifier: Apache-2.0 */
/* What is about the daemon rather than about sandboxes. */
#include "api/handlers.h"

HANDLER(service_health)
{
	(void)context;
	(void)err;
	request_answer_text(req, 200, "text/plain", "ok\n");
	return 0;
}

HANDLER(service_ready)
{
	const struct api *api = context;

	(void)err;
	if (api->engine)
		request_answer_text(req, 200, "text/plain", "ready\n");
	else
		request_answer_text(req, 503, "text/plain", api->unready);
	return 0;
}

HANDLER(service_version)
{
	(void)context;
	(void)err;
	request_answer_json(req, 200, json_pack("{s:s}", "version", SANDLOT_VERSION));
	return 0;
}

HANDLER(service_openapi)
{
	const struct api *api = context;

	(void)err;
	request_answer_json(req, 200, json_incref(api->openapi));
	return 0;
}

HANDLER(service_shutdown)
{
	struct api *api = context;

	(void)err;
	request_answer_json(req, 202, json_pack("{s:s}", "status", "shutting down"));
	api->shutdown(api->shutdown_arg);
	return 0;
}
