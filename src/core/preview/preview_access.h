/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see a preview: anybody if its port is public; else who shows a token of its owner, or a link
 * for that port. A port that was not declared opens with such a token alone.
 *
 * How tokens and links are shown (headers, cookies, queries) is for the caller to know, who passes on
 * their SHA-256.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"
#include "model/access/caller.h"
#include "model/sandbox/sandbox_port.h"

#define PREVIEW_HASH_LEN 32

enum preview_opener {
	PREVIEW_BY_ALL,	   /* the port is public */
	PREVIEW_BY_LINK,   /* whose hash is kept */
	PREVIEW_BY_TOKEN,  /* whose hash is kept */
	PREVIEW_BY_SIGNED, /* a signed token, which nothing but its end revokes */
};

/* What opened a preview. It stays open until that expires, or is revoked. */
struct preview_grant {
	enum preview_opener opener;
	unsigned char hash[PREVIEW_HASH_LEN];
	int64_t expires_at_ms; /* on the wall clock; 0: never */
};

/* A token that is valid, whose, and what it opens of its owner's. */
struct preview_token {
	struct caller caller;
	struct preview_grant grant;
};

/* What a visitor shows. */
struct preview_visitor {
	const struct preview_token *tokens;
	size_t token_count;
	const unsigned char (*links)[PREVIEW_HASH_LEN];
	size_t link_count;
};

/* Whether a visitor may see a port of a sandbox: 0, or -EACCES. */
int preview_access_check(struct engine *engine, const struct sandbox_record *record, uint16_t port,
	const struct preview_visitor *visitor, struct preview_grant *ret_grant) must_check;

/* Whether what opened a port opens it still. */
bool preview_access_is_open(struct engine *engine, const struct sandbox_record *record,
	uint16_t port, const struct preview_grant *grant) must_check;

/* The link of that hash, if it opens a declared port of that sandbox; else -ENOENT. */
int preview_access_find_link(struct engine *engine, const struct sandbox_record *record,
	uint16_t port, const unsigned char hash[PREVIEW_HASH_LEN], struct preview_link *ret_link)
	must_check;

/* The link of that hash, if it is for a frame; else -ENOENT. */
int preview_access_find_frame(struct engine *engine, const unsigned char hash[PREVIEW_HASH_LEN],
	struct preview_link *ret_link) must_check;

/* --- links: for the owner of a sandbox --- */

#define PREVIEW_LINK_MAX_S     (30 * 24 * 3600)
#define PREVIEW_LINK_DEFAULT_S (24 * 3600)

struct preview_link_spec {
	uint16_t port;	      /* a declared one */
	int64_t expires_in_s; /* 0: a day */
	const char
		*frame_origin; /* whose pages show it in a frame; NULL: it is opened in a window */
};

/* Makes a link from the hash of its secret. */
int preview_access_add_link(struct sandbox *sandbox, const struct preview_link_spec *spec,
	const unsigned char hash[PREVIEW_HASH_LEN], struct preview_link *ret_link, struct err *err)
	must_check;

/* Revokes a link, at once. */
int preview_access_remove_link(
	struct sandbox *sandbox, uint16_t port, const char *link_id, struct err *err) must_check;
