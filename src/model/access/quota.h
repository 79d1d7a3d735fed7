/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: how much of each kind an organization, or one of its users, may have. A sandbox counts for
 * both, and both must allow it.
 */
#pragma once

#include "base/err.h"
#include "model/process/danger.h"

#include <stdbool.h>
#include <stdint.h>

enum quota_kind {
	QUOTA_SANDBOXES,  /* that exist, in any state */
	QUOTA_RUNNING,	  /* that run, are paused, or are being started */
	QUOTA_WORKSPACES, /* of sandboxes that exist, and kept ones */
	QUOTA_CPU,	  /* of those that run, in thousandths of a core */
	QUOTA_MEMORY,	  /* of those that run, in bytes */
	QUOTA_DISK,	  /* of workspaces, kept ones too, and of kept output, in bytes */
	QUOTA_IMAGES,	  /* layers that were brought in or built, in bytes of their files */
	QUOTA_PROJECTS,	  /* files of projects, in bytes */
	QUOTA_CREATES,	  /* in a minute */
	QUOTA_KIND_COUNT,
};

#define QUOTA_UNSET	(-2) /* as the default says */
#define QUOTA_UNLIMITED (-1)

struct quota {
	int64_t limits[QUOTA_KIND_COUNT];
	int danger; /* enum danger_policy: what becomes of dangerous commands; or QUOTA_UNSET */
};

/* An amount of each kind: what is used, or asked for. */
struct quota_amounts {
	uint64_t of[QUOTA_KIND_COUNT];
};

/* "creates_per_minute" */
const char *quota_name(enum quota_kind kind);
int quota_find(const char *name, enum quota_kind *ret_kind) must_check;

/* An amount as people write it: "10", "1.5", "8Gi". */
#define QUOTA_TEXT_LEN 32
void quota_format(enum quota_kind kind, uint64_t amount, char text[QUOTA_TEXT_LEN]);

/* The same for a message, with sizes rounded: "1.5 TiB". */
void quota_describe(enum quota_kind kind, uint64_t amount, char text[QUOTA_TEXT_LEN]);

int quota_parse_amount(enum quota_kind kind, const char *text, uint64_t *ret_amount) must_check;

/* Nothing set. */
void quota_clear(struct quota *quota);

/* "sandboxes=10,memory=8Gi,dangerous_commands=confirm"; what is not named is QUOTA_UNSET. -EINVAL if it is anything else. */
int quota_parse(const char *text, struct quota *ret_quota) must_check;

/* What counts where both have an opinion, or only the default, or none. */
struct quota quota_over(const struct quota *own, const struct quota *defaults);
bool quota_limits_anything(const struct quota *quota);
