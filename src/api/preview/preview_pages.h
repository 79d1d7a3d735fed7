/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody sees who asks for a preview that cannot be shown: a page for browsers, JSON for everybody else. */
#pragma once

#include "proxy/proxy.h"

#include <jansson.h>

struct preview_page {
	unsigned status;
	const char *code;	 /* stable, for programs */
	const char *title;	 /* for people */
	const char *message;	 /* what, and why; any text */
	const char *remediation; /* what to do, or NULL */
	const char *output;	 /* the last lines of the app, or NULL; any text */
	const json_t *listening; /* ports that would answer, or NULL; the message says so too */
	bool reloads;		 /* it will be there soon: the page looks again by itself */
	unsigned retry_after_s;	 /* when to come again; 0: nobody knows */
};

void preview_page_put(const struct preview_page *page, bool is_html, struct proxy_way *way);
