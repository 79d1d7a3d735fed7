/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox in which a step of a build runs. It is its owner's, and counts in the owner's quota, but it
 * is in no list; it goes with the step, also if the daemon dies meanwhile (store/template/store_build.h).
 * All of these block, on the thread of the job, and give up with -ECANCELED when the job must stop.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/files/tar_reader.h"
#include "core/job/job.h"

struct build_sandbox {
	struct engine *engine;
	const struct owner *owner;
	struct job *job; /* NULL: of a request that waits for it */
	struct sandbox *sandbox;
	bool has_own_network; /* that of the sandbox which the job is about */
	char id[ID_LEN + 1];
};

struct build_sandbox_spec {
	const char *template_name; /* "host", or what is shown as such */
	const json_t *image;	   /* what it starts from, or NULL: the host's files */
	const json_t
		*network;    /* of the sandbox that the job is about; NULL: that of the template */
	const json_t *allow; /* rules beside those of its network, or NULL */
	struct resources resources; /* 0: the usual */
};

int build_sandbox_open(struct engine *engine, const struct owner *owner, struct job *job,
	const struct build_sandbox_spec *spec, struct build_sandbox *ret_box, struct err *err)
	must_check;

/* Ends and removes it with all its files. Harmless if it is not there. */
void build_sandbox_close(struct build_sandbox *box);

struct build_command {
	const json_t *argv; /* texts */
	const json_t *env;  /* object of texts, or NULL */
	const char *user;   /* "", "app", "1000", "1000:1000", "app:group" */
	const char *workdir;
};

/*
 * Runs a command to its end; its output goes into the job's log. ERR_UNPROCESSABLE (step_failed) with its
 * last words if it fails.
 */
int build_sandbox_run(
	struct build_sandbox *box, const struct build_command *command, struct err *err) must_check;

/* Writes a file as root, with its parents, through links as a command would. */
int build_sandbox_write(struct build_sandbox *box, const char *path, int mode, const void *data,
	size_t len, struct err *err) must_check;
int build_sandbox_mkdir(struct build_sandbox *box, const char *path, struct err *err) must_check;

/* Makes a link, with its parents; what stands there is replaced unless it is a directory. */
int build_sandbox_link(struct build_sandbox *box, const char *path, const char *target,
	struct err *err) must_check;

/* Unpacks a tar or tar.gz into a directory, which is made if need be: of strangers, as an upload is. */
int build_sandbox_unpack(struct build_sandbox *box, const char *path,
	const struct tar_reader_source *source, struct tar_reader_result *ret_result,
	struct err *err) must_check;

/* Whether its job is to end. */
bool build_sandbox_must_stop(const struct build_sandbox *box);

/* Has who starts from an image be root there. Who that is stands there, so nothing is prepared, which would become part of a
 * layer. */
void build_sandbox_show_as_root(json_t *image);

/* Whether there is a directory, or a link to one. */
bool build_sandbox_has_directory(struct build_sandbox *box, const char *path);

/* Reads a small file whole; the caller frees it. */
int build_sandbox_load(struct build_sandbox *box, const char *path, size_t max, char **ret_text,
	struct err *err) must_check;

/* Stops it, so that what it has changed can be read. */
int build_sandbox_stop(struct build_sandbox *box, struct err *err) must_check;
