/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST .../exec: runs a command and answers when it has ended, streams it as it goes, or starts it in the
 * background and answers when it runs.
 *
 * The handler only starts it. From then on no thread waits: the request is held, and what the agent
 * reports answers it. A client that goes away takes its foreground command with it, unless it asked
 * otherwise.
 */
#include "api/audit_hook.h"
#include "api/handlers.h"
#include "api/process/command_body.h"
#include "api/process/danger_answer.h"
#include "api/process/output_events.h"
#include "api/process/process_body.h"
#include "api/text.h"
#include "core/process/command_run.h"
#include "core/snapshot/checkpoints.h"

#include <stdatomic.h>
#include <stdio.h>

/* One request for a command; referenced by the request and by its watch of the process. */
struct exec_request {
	atomic_int refs;
	struct request *_Atomic req; /* whoever takes it answers */
	struct process *process;     /* streaming, or in the background */
	char *cwd;		     /* for messages */
	danger_set danger;	     /* what it was flagged for */
	bool cancels;		     /* the command ends with its client */
	struct output_events *feed;  /* streaming */
	struct command_run *run;     /* one document; the process is its own then */
	char checkpoint[ID_LEN + 1]; /* that was made before it; "": none */
};

static void exec_request_unref(void *arg)
{
	struct exec_request *exec_request = arg;

	if (atomic_fetch_sub(&exec_request->refs, 1) > 1)
		return;
	process_unref(exec_request->process);
	output_events_unref(exec_request->feed);
	command_run_unref(exec_request->run);
	free(exec_request->cwd);
	free(exec_request);
}

static struct request *take_request(struct exec_request *exec_request)
{
	return atomic_exchange(&exec_request->req, NULL);
}

/* As command_run_leave. */
static bool leave(struct exec_request *exec_request)
{
	if (exec_request->run)
		return command_run_leave(exec_request->run);
	if (exec_request->cancels) {
		process_kill(exec_request->process, true);
		process_unpace(exec_request->process);
		return true;
	}
	process_unwatch(exec_request->process, exec_request);
	return false;
}

static void client_gone(void *arg)
{
	struct exec_request *exec_request = arg;
	struct request *req;
	struct err err;

	if (leave(exec_request))
		return;
	req = take_request(exec_request);
	if (req) {
		err_set(&err, ERR_UNAVAILABLE, "the client left");
		request_release_error(req, &err);
	}
}

/* It never ran for a reason that is an error of the request: says so; whether that was the case. */
static bool answer_failure(struct exec_request *exec_request, const struct process_end *end)
{
	struct request *req;
	struct err err;

	if (command_body_explain(exec_request->cwd, end, &err) == 0)
		return false;
	req = take_request(exec_request);
	if (req)
		request_release_error(req, &err);
	return true;
}

static void set_checkpoint(json_t *answer, const struct exec_request *exec_request)
{
	if (exec_request->checkpoint[0])
		json_object_set_new(answer, "checkpoint", json_string(exec_request->checkpoint));
}

/* --- as one document --- */

static bool set_output(json_t *answer, const char *name, const struct command_run_output *output)
{
	if (output->data)
		text_set(answer, name, output->data, output->len);
	return output->is_cut;
}

static void document_ended(void *arg, const struct command_run_end *end)
{
	struct exec_request *exec_request = arg;
	struct request *req;
	json_t *answer;
	bool is_cut;

	if (answer_failure(exec_request, end->end))
		return;
	req = take_request(exec_request);
	if (!req)
		return;
	answer = process_body_encode_end(end->end);
	is_cut = set_output(answer, "stdout", &end->output[0]);
	is_cut |= set_output(answer, "stderr", &end->output[1]);
	json_object_set_new(answer, "truncated", json_boolean(is_cut));
	set_checkpoint(answer, exec_request);
	if (exec_request->danger)
		json_object_set_new(answer, "flags", danger_to_json(exec_request->danger));
	request_answer_json(req, 200, answer);
	request_release(req);
}

static const struct command_run_events document_events = {document_ended, exec_request_unref};

/* --- as a stream --- */

static void stream_started(void *arg, uint32_t pid)
{
	struct exec_request *exec_request = arg;
	struct request *req = take_request(exec_request);
	struct process_record record;

	if (!req)
		return;
	process_read(exec_request->process, &record);
	output_events_started(exec_request->feed, record.number, pid);
	process_record_fini(&record);
	output_events_answer(exec_request->feed, req);
	request_release(req);
	process_unwatch(exec_request->process, exec_request); /* the feed does the rest */
}

/* If it never ran, there is no stream yet: the answer is an error, or a stream with just its end. */
static void stream_ended(void *arg, const struct process_end *end)
{
	if (!answer_failure(arg, end))
		stream_started(arg, 0);
}

static const struct process_events stream_events = {
	.started = stream_started, .ended = stream_ended, .release = exec_request_unref};

/* --- in the background --- */

static void answer_process(struct exec_request *exec_request)
{
	struct request *req = take_request(exec_request);
	struct process_record record;
	json_t *answer;
	char path[128];

	if (!req)
		return;
	process_read(exec_request->process, &record);
	snprintf(path, sizeof(path), "/v1/sandboxes/%s/processes/p%u", record.sandbox_id,
		record.number);
	request_answer_header(req, "Location", path);
	answer = json_pack("{s:o}", "process", process_body_encode(request_context(req), &record));
	set_checkpoint(answer, exec_request);
	request_answer_json(req, 201, answer);
	process_record_fini(&record);
	request_release(req);
}

static void background_started(void *arg, uint32_t pid)
{
	struct exec_request *exec_request = arg;

	(void)pid;
	answer_process(exec_request);
	process_unwatch(exec_request->process, exec_request);
}

static void background_ended(void *arg, const struct process_end *end)
{
	if (!answer_failure(arg, end))
		answer_process(arg);
}

static const struct process_events background_events = {
	.started = background_started, .ended = background_ended, .release = exec_request_unref};

/* --- the handler --- */

static bool wants_stream(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

static struct exec_request *make_exec_request(struct request *req, const struct command *command)
{
	struct exec_request *exec_request = mem_new(sizeof(*exec_request));

	exec_request->refs = 2; /* the request's and the watch's */
	exec_request->req = req;
	exec_request->cancels = command->cancels_with_caller;
	exec_request->danger = command->spec.danger;
	exec_request->cwd = mem_strdup(command->spec.cwd);
	return exec_request;
}

static const struct process_events *choose_form(const struct api *api,
	struct exec_request *exec_request, struct sandbox *sandbox, const struct command_spec *spec)
{
	struct output_events_spec feed = {.sandbox = sandbox,
		.process = exec_request->process,
		.has_start = true,
		.follows = true,
		.is_pacing = true,
		.cancels = exec_request->cancels,
		.api = api};

	if (spec->is_background)
		return &background_events;
	exec_request->feed = output_events_new(&feed);
	output_events_watch(exec_request->feed);
	return &stream_events;
}

/* Makes it, watched but not running yet. */
static int prepare(struct exec_request *exec_request, const struct api *api,
	struct sandbox *sandbox, const struct command_spec *spec, const struct command *command,
	struct err *err)
{
	const struct command_run_limits limits = {.spool_fd = api->spool_fd,
		.output_max = api->exec_output_max,
		.disk_reserve = api->spool_reserve};
	int r;

	if (!spec->is_background && !spec->is_streamed)
		return command_run_new(sandbox, command, &limits, &document_events, exec_request,
			&exec_request->run, err);
	r = process_new(sandbox, &exec_request->process, err);
	if (r < 0)
		return r;
	if (!process_watch(exec_request->process, choose_form(api, exec_request, sandbox, spec),
		    exec_request))
		abort(); /* it does not run yet */
	return 0;
}

static int run(struct request *req, struct sandbox *sandbox, const struct command_spec *spec,
	struct command *command, const char *checkpoint, struct err *err)
{
	struct exec_request *exec_request = make_exec_request(req, command);
	int r;

	snprintf(exec_request->checkpoint, sizeof(exec_request->checkpoint), "%s", checkpoint);
	request_keep(req, exec_request, exec_request_unref);
	r = prepare(exec_request, request_context(req), sandbox, spec, command, err);
	if (r < 0) {
		exec_request_unref(exec_request); /* the watch's: there is none */
		return r;
	}
	/* Before the start: its end may be reported before that returns. */
	request_hold(req, client_gone, exec_request);
	r = exec_request->run ? command_run_start(exec_request->run, command, err)
			      : process_run(exec_request->process, &command->spec, err);
	if (r < 0 && take_request(exec_request))
		request_release_error(req, err);
	return 0;
}

static int decode_and_run(struct request *req, struct sandbox *sandbox, struct err *err)
{
	auto_(command_body_fini) struct command_body body not_cleared;
	char checkpoint[ID_LEN + 1] = "";
	struct command command;
	int r = command_body_decode(req, &body, err);

	if (r < 0)
		return r;
	body.spec.is_streamed = wants_stream(req);
	r = command_make(sandbox, &body.spec, &command, err);
	if (r < 0)
		return r;
	audit_hook_command(request_context(req), req, command.spec.argv);
	r = danger_answer_ask_in(req, request_context(req), sandbox,
		(struct danger_question){.argv = command.spec.argv,
			.input = command.spec.input,
			.input_len = command.spec.input_len,
			.confirm = body.confirm},
		&command.spec.danger, err);
	if (r == 0 && body.wants_checkpoint)
		r = checkpoints_take(sandbox, checkpoint, err);
	if (checkpoint[0])
		request_answer_header(req, "Sandlot-Checkpoint", checkpoint);
	if (r == 0)
		r = run(req, sandbox, &body.spec, &command, checkpoint, err);
	command_fini(&command);
	return r;
}

HANDLER(exec_run)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	return r < 0 ? r : decode_and_run(req, sandbox, err);
}
