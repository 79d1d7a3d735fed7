/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a template is made of another one: a recipe, or a Dockerfile. Both become the same list of
 * steps, each of which writes a layer, and the config of what comes out. The text is foreign; what
 * it may be is bounded here, and nothing of it is looked up on the host: COPY takes files that came
 * with the request.
 *
 *   {"recipe": {"from", "apt": [], "apk": [], "pip": [], "npm": [], "run": [], "files": {path: text}, "env": {}}}
 *   {"dockerfile": text, "files": {path: text}, "args": {}}
 *
 * A Dockerfile may have several stages; "target" names the one that is wanted, else it is the last. Files that are not
 * UTF-8 are in "files_base64"; "modes": {path: "755"} are those of files that have others than 644, "links": {path:
 * target} and "directories": [path] come with them. Instead of all these a Dockerfile may have "files_digest", which names files
 * that were sent before (core/template/build/build_files.h). Both may have "mirrors": {"apt", "pip", "npm", "apk"},
 * addresses from which packages come.
 */
#pragma once

#include "base/err.h"
#include "image/recipe_files.h"

#include <jansson.h>
#include <stdint.h>

#define RECIPE_STEPS_MAX    64
#define RECIPE_PACKAGES_MAX 256
#define RECIPE_STAGES_MAX   32
#define RECIPE_TITLE_MAX    160
#define RECIPE_TARGET	    -1 /* the stage that is wanted */

enum recipe_step_kind {
	RECIPE_RUN,
	RECIPE_COPY,
	RECIPE_MKDIR, /* WORKDIR makes its directory */
	RECIPE_APT,
	RECIPE_PIP,
	RECIPE_NPM,
	RECIPE_APK,
};

struct recipe_step {
	enum recipe_step_kind kind;
	unsigned line; /* of the Dockerfile; 0: of a recipe */
	char *title;   /* as the log shows it, one line */
	json_t *words; /* the command's arguments, the packages, or what to copy */
	char *target;  /* where to copy, or the directory; absolute */
	bool is_into;  /* the target of a copy is a directory */
	bool unpacks;  /* an archive that is named itself is unpacked into the target, by ADD */
	char *chown;   /* "user[:group]", or NULL */
	int mode;      /* of copied files, or -1 */
	char *source; /* where a copy takes files from: a stage, a template or an image; NULL: the request */
	int source_stage; /* the number of that stage, which is an earlier one; -1: it is none */
	json_t *env;	  /* of the command: the config's variables so far, and arguments */
	char *user;	  /* "" is root */
	char *workdir;
};

struct recipe {
	char *from;	/* the template that it begins with */
	int from_stage; /* the earlier stage that it begins with; -1: from is none */
	int stage;	/* which one this is, of so many */
	int stage_count;
	struct recipe_step *steps;
	size_t count;
	json_t *image; /* the base's config, changed: env user workdir entrypoint command ports */
	json_t *files; /* path: what it is (image/recipe_files.h); paths are relative and plain */
	bool has_sent_files; /* copies are of files that were sent before, of which nothing is known here */
	json_t *mirrors; /* object of addresses */
	json_t *notes;	 /* texts for the log: what was left out */
};

void recipe_fini(struct recipe *recipe);

/* --- for the readers of both kinds --- */

/* A source while it is read. */
struct recipe_reading {
	struct recipe *recipe;
	const json_t *base;
	const json_t *given; /* arguments of the request, or NULL */
	json_t *global;	     /* ARG before FROM */
	json_t *args;	     /* ARG after it */
	json_t *names;	     /* of all stages, in lower case; "" for those without */
	int stage;	     /* that is read now; -1: no FROM has come yet */
	unsigned line;
	bool is_command_set;
};

int recipe_refuse(struct err *err, const char *what);

/* The config so far: a copy of the base's, with what every one has, and what the source says. */
void recipe_begin_config(struct recipe_reading *reading);
const char *recipe_config_text(const struct recipe_reading *reading, const char *name);
void recipe_set_config(struct recipe_reading *reading, const char *name, json_t *value);
json_t *recipe_env_of(const struct recipe_reading *reading);
bool recipe_is_env_name(const char *name);
int recipe_set_env(struct recipe_reading *reading, const char *name, const char *value,
	struct err *err) must_check;

/* A new step with what holds at this point; NULL with err set when there are too many. */
struct recipe_step *recipe_add_step(struct recipe_reading *reading, enum recipe_step_kind kind,
	const char *name, const char *text, struct err *err);

/* Adds a line to what the log will say. */
void recipe_note(struct recipe_reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
