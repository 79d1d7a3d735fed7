/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/transport.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define SOON_DAYS 14

int transport_listen(
	const char *address, const char *flag, struct listener *ret_listener, struct err *err)
{
	int r = listener_open(address, ret_listener, err);

	if (r == -EADDRINUSE)
		snprintf(err->remedy, sizeof(err->remedy),
			"another sandlotd? choose another address with %s; \"make run\" takes "
			"SANDLOT_DATA_DIR, SANDLOT_API_BIND and SANDLOT_PREVIEW_BIND",
			flag);
	return r;
}

/* --- settings --- */

static int check_pair(
	const char *name, const char *chain_path, const char *key_path, struct err *err)
{
	if (!chain_path[0] == !key_path[0])
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_setting", NULL,
		"%s-certificate and %s-key are set together or not at all", name, name);
}

static int check_plain(const struct settings *settings, const char *name, const char *bind,
	const struct listener *listener, struct err *err)
{
	if (listener->is_loopback || settings->allow_plain)
		return 0;
	return err_explain(err, ERR_DENIED, "plain_refused",
		"set tls-certificate and tls-key; or allow-plain, if only a proxy that speaks TLS "
		"can reach this address",
		"%s %s is not a loopback address, and without TLS everybody on the way could read "
		"tokens and what passes",
		name, bind);
}

/* The one of the API does for previews too, unless they have their own. */
static struct endpoint preview_endpoint(const struct settings *settings)
{
	if (settings->preview_tls_certificate[0])
		return (struct endpoint){.chain_path = settings->preview_tls_certificate,
			.key_path = settings->preview_tls_key};
	return (struct endpoint){
		.chain_path = settings->tls_certificate, .key_path = settings->tls_key};
}

int transport_check(const struct settings *settings, const struct listener *api,
	const struct listener *preview, struct err *err)
{
	int r = check_pair("tls", settings->tls_certificate, settings->tls_key, err);

	if (r == 0)
		r = check_pair("preview-tls", settings->preview_tls_certificate,
			settings->preview_tls_key, err);
	if (r == 0 && !settings->tls_certificate[0])
		r = check_plain(settings, "api-bind", settings->api_bind, api, err);
	if (r == 0 && !preview_endpoint(settings).chain_path[0])
		r = check_plain(settings, "preview-bind", settings->preview_bind, preview, err);
	return r;
}

/* --- endpoints --- */

static void remind(struct endpoint *endpoint)
{
	int days = endpoint->certificate ? certificate_days_left(endpoint->certificate) : SOON_DAYS;

	if (days < 0)
		log_warning("the certificate in %s has expired: clients refuse it",
			endpoint->chain_path);
	else if (days < SOON_DAYS)
		log_warning("the certificate in %s expires in %d days", endpoint->chain_path, days);
}

static int open_endpoint(
	struct endpoint *endpoint, struct listener *listener, unsigned max_crowd, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int r;

	if (!endpoint->chain_path[0])
		return 0;
	r = certificate_open(endpoint->chain_path, endpoint->key_path, &endpoint->certificate, err);
	if (r == 0)
		r = terminator_open(endpoint->certificate, cores > 0 ? (unsigned)cores : 1,
			max_crowd, &endpoint->terminator, err);
	if (r < 0)
		return r;
	listener->terminator = endpoint->terminator;
	remind(endpoint);
	return 0;
}

static void close_endpoint(struct endpoint *endpoint)
{
	terminator_close(endpoint->terminator);
	certificate_close(endpoint->certificate);
	*endpoint = (struct endpoint){0};
}

static void reload(struct endpoint *endpoint)
{
	struct err err;

	if (!endpoint->certificate)
		return;
	if (certificate_reload(endpoint->certificate, &err) < 0) {
		log_error("the certificate in use stays: %s%s%s", err.message,
			err.remedy[0] ? "; " : "", err.remedy);
		return;
	}
	log_info("the certificate in %s was read again", endpoint->chain_path);
	remind(endpoint);
}

/* --- all of them --- */

int transport_open(const struct settings *settings, struct transport *transport,
	struct listener *api, struct listener *preview, unsigned max_crowd, struct err *err)
{
	int r;

	transport->api = (struct endpoint){
		.chain_path = settings->tls_certificate, .key_path = settings->tls_key};
	transport->preview = preview_endpoint(settings);
	r = open_endpoint(&transport->api, api, max_crowd, err);
	return r == 0 ? open_endpoint(&transport->preview, preview, max_crowd, err) : r;
}

void transport_close(struct transport *transport)
{
	close_endpoint(&transport->api);
	close_endpoint(&transport->preview);
}

void transport_reload(struct transport *transport)
{
	reload(&transport->api);
	reload(&transport->preview);
}

void transport_remind(struct transport *transport)
{
	remind(&transport->api);
	remind(&transport->preview);
}
