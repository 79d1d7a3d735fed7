/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sandbox and port a request for a preview means: by the name of its host (model/sandbox/preview_name.h), or, where
 * names below a domain are not to be had, by a path in front.
 */
#pragma once

#include "http/listener.h"
#include "http/message.h"
#include "model/id.h"
#include "model/sandbox/preview_name.h"
#include "model/sandbox/sandbox_record.h"
#include "proxy/proxy.h"

struct preview_target {
	char id[SANDBOX_NAME_MAX]; /* by path it may be a name, which means one of the visitor's own sandboxes */
	uint16_t port;	     /* 0: the first that the sandbox has */
	struct slice prefix; /* the path in front, of the visit's target; at NULL by name */
	/* The secret of a frame, whose link says which sandbox and port it is; "": none. */
	char frame[PREVIEW_NAME_LABEL_MAX];
};

/*
 * Reads "/v1/sandboxes/<id or name>/preview/<port>", or "/api/sandbox/sessions/<id>/preview" for the first port, in front of
 * a path. -ENOENT if it begins like neither, -EINVAL if it does but names no preview.
 */
int preview_target_parse_path(const char *path, struct preview_target *ret_target) must_check;

/* -ENOENT or -EINVAL if it means none. */
int preview_target_find(const char *domain, const struct listener *listener,
	const struct proxy_visit *visit, struct preview_target *ret_target) must_check;

/*
 * The prefix of the preview by path that a stray request came from: one that names no preview itself, but that a style
 * or script below that prefix asked for, as Referer says. -ENOENT if there is none. What it is told to ask for instead
 * names a preview, so it is told so once.
 */
int preview_target_find_stray(const char *domain, const struct listener *listener,
	const struct proxy_visit *visit, struct slice *ret_prefix) must_check;
