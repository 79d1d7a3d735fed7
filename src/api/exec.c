/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST .../exec: runs a command and answers when it has ended, streams it as it goes, or starts it in the
 * background and answers when it runs.
 *
 * The handler only starts it. From then on no thread waits: the request is held, and what the agent
 * reports answers it. A client that goes away takes its foreground command with it, unless it asked
 * otherwise.
 */
#include "api/command_body.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "api/process_body.h"
#include "api/text.h"
#include "api/witness.h"
#include "base/spool.h"

#include <stdatomic.h>
#include <stdio.h>

/* One request for a command; referenced by the request and by its watch of the process. */
struct execution {
	atomic_int refs;
	struct request *_Atomic req; /* whoever takes it answers */
	struct process *process;
	char *cwd;		/* for messages */
	bool cancels;		/* the command ends with its client */
	struct feed *feed;	/* streaming */
	struct spool output[2]; /* one document: stdout, stderr */
};

static void execution_unref(void *arg)
{
	struct execution *execution = arg;

	if (atomic_fetch_sub(&execution->refs, 1) > 1)
		return;
	process_unref(execution->process);
	feed_unref(execution->feed);
	spool_fini(&execution->output[0]);
	spool_fini(&execution->output[1]);
	free(execution->cwd);
	free(execution);
}

static struct request *take_request(struct execution *execution)
{
	return atomic_exchange(&execution->req, NULL);
}

static void client_gone(void *arg)
{
	struct execution *execution = arg;
	struct request *req;
	struct err err;

	if (execution->cancels) {
		process_kill(execution->process, true);
		process_unpace(execution->process);
		return;
	}
	process_unwatch(execution->process, execution);
	req = take_request(execution);
	if (req) {
		err_set(&err, ERR_UNAVAILABLE, "the client left");
		request_release_error(req, &err);
	}
}

/* It never ran for a reason that is an error of the request: says so; whether that was the case. */
static bool answer_failure(struct execution *execution, const struct process_end *end)
{
	struct request *req;
	struct err err;

	if (command_body_explain(execution->cwd, end, &err) == 0)
		return false;
	req = take_request(execution);
	if (req)
		request_release_error(req, &err);
	return true;
}

/* --- as one document --- */

static void document_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct execution *execution = arg;

	spool_put(&execution->output[stream - 1], data, len);
}

static bool set_output(json_t *answer, const char *name, struct spool *output)
{
	auto_free uint8_t *data = spool_take(output);
	size_t len = output->len;

	if (!data)
		return true;
	if (output->is_cut)
		len -= text_unfinished(data, len);
	text_set(answer, name, data, len);
	return output->is_cut;
}

static void document_ended(void *arg, const struct process_end *end)
{
	struct execution *execution = arg;
	struct request *req;
	json_t *answer;
	bool is_cut;

	if (answer_failure(execution, end))
		return;
	req = take_request(execution);
	if (!req)
		return;
	answer = process_body_encode_end(end);
	is_cut = set_output(answer, "stdout", &execution->output[0]);
	is_cut |= set_output(answer, "stderr", &execution->output[1]);
	json_object_set_new(answer, "truncated", json_boolean(is_cut));
	request_answer_json(req, 200, answer);
	request_release(req);
}

static const struct process_events document_events = {
	.output = document_output, .ended = document_ended, .release = execution_unref};

/* --- as a stream --- */

static void stream_started(void *arg, uint32_t pid)
{
	struct execution *execution = arg;
	struct request *req = take_request(execution);
	struct process_record record;

	if (!req)
		return;
	process_read(execution->process, &record);
	feed_started(execution->feed, record.number, pid);
	process_record_fini(&record);
	feed_answer(execution->feed, req);
	request_release(req);
	process_unwatch(execution->process, execution); /* the feed does the rest */
}

/* If it never ran, there is no stream yet: the answer is an error, or a stream with just its end. */
static void stream_ended(void *arg, const struct process_end *end)
{
	if (!answer_failure(arg, end))
		stream_started(arg, 0);
}

static const struct process_events stream_events = {
	.started = stream_started, .ended = stream_ended, .release = execution_unref};

/* --- in the background --- */

static void answer_process(struct execution *execution)
{
	struct request *req = take_request(execution);
	struct process_record record;
	char path[128];

	if (!req)
		return;
	process_read(execution->process, &record);
	snprintf(path, sizeof(path), "/v1/sandboxes/%s/processes/p%u", record.sandbox_id,
		record.number);
	request_answer_header(req, "Location", path);
	request_answer_json(req, 201, json_pack("{s:o}", "process", process_body_encode(&record)));
	process_record_fini(&record);
	request_release(req);
}

static void background_started(void *arg, uint32_t pid)
{
	struct execution *execution = arg;

	(void)pid;
	answer_process(execution);
	process_unwatch(execution->process, execution);
}

static void background_ended(void *arg, const struct process_end *end)
{
	if (!answer_failure(arg, end))
		answer_process(arg);
}

static const struct process_events background_events = {
	.started = background_started, .ended = background_ended, .release = execution_unref};

/* --- the handler --- */

static bool wants_stream(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

static struct execution *make_execution(
	struct api *api, struct request *req, const struct command *command)
{
	struct execution *execution = mem_new(sizeof(*execution));

	execution->refs = 2; /* the request's and the watch's */
	execution->req = req;
	execution->cancels = command->cancels_with_client;
	execution->cwd = mem_strdup(command->spec.cwd);
	for (size_t i = 0; i < 2; i++)
		spool_init(&execution->output[i], api->spool_fd, api->exec_output_max);
	return execution;
}

/* What the three forms differ in. Output is kept of all whose client may come back for it. */
static const struct process_events *choose_form(const struct api *api, struct execution *execution,
	struct sandbox *sandbox, struct command *command, bool streaming)
{
	struct feed_spec feed = {.sandbox = sandbox,
		.process = execution->process,
		.has_start = true,
		.follows = true,
		.is_pacing = true,
		.cancels = command->cancels_with_client,
		.api = api};

	command->spec.is_kept =
		command->spec.is_background || streaming || !command->cancels_with_client;
	if (command->spec.is_background)
		return &background_events;
	if (!streaming)
		return &document_events;
	command->spec.is_paced = true;
	execution->feed = feed_new(&feed);
	feed_watch(execution->feed);
	return &stream_events;
}

HANDLER(exec_run)
{
	struct api *api = context;
	const struct process_events *form;
	struct execution *execution;
	struct sandbox *sandbox;
	struct command command;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = command_body_decode(req, sandbox, &command, err)) < 0)
		return r;
	witness_command(api, req, command.spec.argv);
	execution = make_execution(api, req, &command);
	request_keep(req, execution, execution_unref);
	r = process_new(sandbox, &execution->process, err);
	if (r < 0) {
		execution_unref(execution); /* the watch's: there is none */
		command_body_fini(&command);
		return r;
	}
	form = choose_form(api, execution, sandbox, &command, wants_stream(req));
	if (!process_watch(execution->process, form, execution))
		abort(); /* it does not run yet */
	/* Before the start: its end may be reported before process_run returns. */
	request_hold(req, client_gone, execution);
	r = process_run(execution->process, &command.spec, err);
	command_body_fini(&command);
	if (r < 0 && take_request(execution))
		request_release_error(req, err);
	return 0;
}
