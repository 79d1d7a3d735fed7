/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview/preview_pages.h"

#include "base/mem.h"

#include <string.h>

#define PAGE_MAX   (32u * 1024)
#define FIELDS_MAX 256

/* No script: it is shown on the origin of an app that nobody has reason to trust. */
static const char head[] =
	"<!doctype html><html lang=en><meta charset=utf-8>"
	"<meta name=viewport content='width=device-width'>%s<title>%s</title><style>"
	"body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem;"
	"color:#1c2430;background:#fafbfc}h1{font-size:1.35rem}p{margin:.6rem 0}"
	"pre{font-size:.8rem;overflow:auto;max-height:40vh;white-space:pre-wrap;background:#eef1f5;"
	"padding:.6rem;border-radius:4px}code{background:#eef1f5;padding:.1rem "
	".3rem;border-radius:4px}"
	".bar{height:3px;background:#e3e8ef;border-radius:2px;overflow:hidden;margin-top:1.5rem}"
	".bar i{display:block;height:100%%;width:30%%;background:#3b82f6;animation:m 1.2s infinite}"
	"@keyframes m{from{margin-left:-30%%}to{margin-left:100%%}}"
	"@media(prefers-color-scheme:dark){body{color:#dbe2ea;background:#12161c}"
	"code,pre,.bar{background:#232a34}}</style>";

static void put_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			buf_append_str(out, "&lt;");
			break;
		case '&':
			buf_append_str(out, "&amp;");
			break;
		case '"':
			buf_append_str(out, "&quot;");
			break;
		default:
			buf_append(out, text, 1);
		}
	}
}

static void put_html(const struct preview_page *page, struct buf *out)
{
	buf_printf(
		out, head, page->reloads ? "<meta http-equiv=refresh content=1>" : "", page->title);
	buf_printf(out, "<h1>%s</h1><p>", page->title);
	put_escaped(out, page->message);
	buf_append_str(out, "</p>");
	if (page->remediation) {
		buf_append_str(out, "<p>");
		put_escaped(out, page->remediation);
		buf_append_str(out, "</p>");
	}
	if (page->output) {
		buf_append_str(out, "<pre>");
		put_escaped(out, page->output);
		buf_append_str(out, "</pre>");
	}
	if (page->reloads)
		buf_append_str(out, "<div class=bar><i></i></div>");
	buf_append_str(out, "</html>\n");
}

static void put_json(const struct preview_page *page, struct buf *out)
{
	json_t *error = json_pack("{s:{s:s, s:s, s:b, s:s?, s:s*, s:O*}}", "error", "code",
		page->code, "message", page->message, "retryable",
		page->status >= 500 || page->reloads || page->retry_after_s, "remediation",
		page->remediation, "output", page->output, "listening", page->listening);
	auto_free char *text = json_dumps(error, JSON_COMPACT);

	json_decref(error);
	buf_append_str(out, text ? text : "{}");
	buf_append_str(out, "\n");
}

void preview_page_put(const struct preview_page *page, bool is_html, struct proxy_way *way)
{
	way->kind = PROXY_ANSWER;
	way->status = page->status;
	way->type = is_html ? "text/html; charset=utf-8" : "application/json";
	way->fields = BUF_INIT(FIELDS_MAX);
	/* It needs nothing but its own style. Who may frame it the proxy says, as of the app itself. */
	buf_append_str(&way->fields,
		"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
		"base-uri 'none'; form-action 'none'\r\n");
	if (page->reloads || page->retry_after_s)
		buf_printf(&way->fields, "Retry-After: %u\r\n",
			page->retry_after_s ? page->retry_after_s : 1);
	way->body = BUF_INIT(PAGE_MAX);
	if (is_html)
		put_html(page, &way->body);
	else
		put_json(page, &way->body);
}
