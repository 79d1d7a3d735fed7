/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The artifacts of executions, one by one: from the sandbox if it is the client's, else the copy that was made before
 * the sandbox of the execution was removed. A header says which.
 */
#include "api/api.h"
#include "api/file_sender.h"
#include "api/files/file_entry.h"
#include "api/handlers.h"
#include "base/fd.h"
#include "base/share_pool.h"
#include "core/execution/artifacts.h"
#include "core/execution/execution.h"
#include "model/access/owner.h"

#include <stdio.h>

#define SOURCE_HEADER "Sandlot-Artifact-Source"

static int not_found(const char *path, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "artifact_not_found",
		"the execution lists its artifacts; what was too large to be copied has no sha256",
		"the execution has no artifact %.200s that is kept", path);
}

static const json_t *find_whole(const struct execution_record *record, const char *path)
{
	json_t *artifact;
	size_t i;

	json_array_foreach(json_object_get(record->outcome, "artifacts"), i, artifact)
	{
		if (strcmp(json_string_value(json_object_get(artifact, "path")), path) == 0)
			return artifact;
	}
	return NULL;
}

/*
 * The one of that path, which may be given below the directory for outputs, or without its first slash, as clients
 * that make one of two slashes send it.
 */
static const json_t *find(const struct execution_record *record, const char *path)
{
	auto_free char *below = mem_printf("%s/%s", ARTIFACTS_DIR, path);
	auto_free char *rooted = mem_printf("/%s", path);
	const json_t *artifact;

	if (path[0] == '/')
		return find_whole(record, path);
	artifact = find_whole(record, below);
	return artifact ? artifact : find_whole(record, rooted);
}

static int answer_copy(struct request *req, struct api *api, const json_t *artifact,
	const char *sha256, struct err *err)
{
	uint64_t size = (uint64_t)json_integer_value(json_object_get(artifact, "size"));
	struct owner owner = api_owner(req);
	char text[DIGEST_LEN + 1];
	struct share *share;
	struct digest digest;
	int fd, r;

	snprintf(text, sizeof(text), DIGEST_PREFIX "%s", sha256);
	r = digest_parse(text, &digest, err);
	if (r < 0)
		return r;
	if (share_pool_take(api->packers, owner_key(&owner), request_principal(req)->is_operator,
		    &share) < 0)
		return err_explain(err, ERR_RATE, "too_many_downloads",
			"wait for some of the downloads to end before you begin more",
			"as many files are being downloaded as may be");
	r = executions_open_copy(api->executions, &digest, &fd, err);
	if (r == 0)
		r = file_sender_answer(req, 200, "application/octet-stream", fd, size, share, err);
	if (r < 0)
		share_give_back(share);
	return r;
}

static int answer_from_sandbox(struct request *req, struct api *api,
	const struct execution_record *record, const char *path, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	auto_fd int fd = -1;
	uint64_t size;
	int r = sandbox_get(api->engine, &record->owner, record->sandbox_id, &sandbox, err);

	if (r == 0)
		r = artifacts_open(sandbox, path, &size, &fd, err);
	if (r == 0 && fd_set_nonblocking(fd) < 0)
		r = err_sys(err, "read an artifact");
	if (r == 0)
		request_answer_fd(req, 200, "application/octet-stream", take_fd(&fd), size);
	return r;
}

HANDLER(artifacts_read)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *asked = request_param(req, "path"), *path, *sha256;
	char disposition[FILE_ENTRY_DISPOSITION_LEN], tag[80];
	struct execution_record record;
	struct execution *execution;
	const json_t *artifact;
	int r = execution_get(
		api->executions, &owner, request_param(req, "execution"), &execution, &record, err);

	if (r < 0)
		return r;
	execution_unref(execution);
	artifact = find(&record, asked);
	path = json_string_value(json_object_get(artifact, "path"));
	sha256 = json_string_value(json_object_get(artifact, "sha256"));
	if (!artifact || (record.is_fresh && !sha256)) {
		r = not_found(asked, err);
	} else {
		file_entry_disposition(path, "", disposition);
		request_answer_header(req, "Content-Disposition", disposition);
		request_answer_header(req, SOURCE_HEADER, record.is_fresh ? "copy" : "sandbox");
		if (record.is_fresh) {
			snprintf(tag, sizeof(tag), "\"%s\"", sha256);
			request_answer_header(req, "ETag", tag);
		}
		r = record.is_fresh ? answer_copy(req, api, artifact, sha256, err)
				    : answer_from_sandbox(req, api, &record, path, err);
	}
	execution_record_fini(&record);
	return r;
}
