/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template that is made of an image: the row in the database. It has the newest version that was
 * built, and what the next one is to be made of, which is the same unless a build failed. A sandbox
 * keeps what it took of the version that it was started from (sandbox_record.image). (The templates
 * that need no image are in model/template/template.h.)
 */
#pragma once

#include "base/err.h"
#include "model/id.h"
#include "model/sandbox/sandbox_record.h"

#define TEMPLATE_NAME_MAX      64
#define TEMPLATE_REFERENCE_MAX 1024
#define TEMPLATE_DIGEST_MAX    72

enum template_status {
	TEMPLATE_BUILDING,
	TEMPLATE_READY,
	TEMPLATE_ERROR, /* of its last build; a version before it can be used nevertheless */
};

struct template_record {
	struct owner owner; /* both empty: the operator's, for everybody */
	char name
		[TEMPLATE_REFERENCE_MAX]; /* as a create says it: a name, or an image's reference */
	int64_t version;		  /* from 1 on; 0: it was never built, and cannot be used */
	/* What it is to be made of: one member, a kind of core/template/template_source.h. Owned. */
	json_t *source;
	json_t *options;      /* what its owner set: core/template/template_options.h. Owned. */
	char job[ID_LEN + 1]; /* that made it or makes it; empty: none */
	enum template_status status;
	char error[320];			/* why, if the status is TEMPLATE_ERROR */
	char reference[TEMPLATE_REFERENCE_MAX]; /* of the image; empty: it came as an archive */
	char digest[TEMPLATE_DIGEST_MAX];	/* of its manifest; empty for an archive */
	/* What sandboxes take of it, and keep: see sandbox_record.image. Owned, never NULL. */
	json_t *image;
	uint64_t bytes;	     /* of its layers as they were sent */
	uint64_t disk_bytes; /* of its layers on disk, shared ones too; only read */
	int64_t created_at_ms;
	int64_t used_at_ms;
};

void template_record_init(struct template_record *record);
void template_record_fini(struct template_record *record);

/* By its version and by the state of its job, which is empty if there is none. */
enum template_status template_status_of(int64_t version, const char *job_state);
const char *template_status_name(enum template_status status);

/* What stands in the place of a template in a create: a name, or the reference of an image. */
bool template_text_is_valid(const char *text);

/* Names: 1-63 characters of a-z 0-9 . _ -, first a letter. */
bool template_name_is_valid(const char *name);
