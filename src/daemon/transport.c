/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/transport.h"

#include "base/log.h"

#include <unistd.h>

#define SOON_DAYS 14

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
static struct door preview_door(const struct settings *settings)
{
	if (settings->preview_tls_certificate[0])
		return (struct door){.chain_path = settings->preview_tls_certificate,
			.key_path = settings->preview_tls_key};
	return (struct door){
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
	if (r == 0 && !preview_door(settings).chain_path[0])
		r = check_plain(settings, "preview-bind", settings->preview_bind, preview, err);
	return r;
}

/* --- doors --- */

static void remind(struct door *door)
{
	int days = door->certificate ? certificate_days_left(door->certificate) : SOON_DAYS;

	if (days < 0)
		log_warning(
			"the certificate in %s has expired: clients refuse it", door->chain_path);
	else if (days < SOON_DAYS)
		log_warning("the certificate in %s expires in %d days", door->chain_path, days);
}

static int open_door(struct door *door, struct listener *listener, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int r;

	if (!door->chain_path[0])
		return 0;
	r = certificate_open(door->chain_path, door->key_path, &door->certificate, err);
	if (r == 0)
		r = terminator_open(
			door->certificate, cores > 0 ? (unsigned)cores : 1, &door->terminator, err);
	if (r < 0)
		return r;
	listener->terminator = door->terminator;
	remind(door);
	return 0;
}

static void close_door(struct door *door)
{
	terminator_close(door->terminator);
	certificate_close(door->certificate);
	*door = (struct door){0};
}

static void reload(struct door *door)
{
	struct err err;

	if (!door->certificate)
		return;
	if (certificate_reload(door->certificate, &err) < 0) {
		log_error("the certificate in use stays: %s%s%s", err.message,
			err.remedy[0] ? "; " : "", err.remedy);
		return;
	}
	log_info("the certificate in %s was read again", door->chain_path);
	remind(door);
}

/* --- all of them --- */

int transport_open(const struct settings *settings, struct transport *transport,
	struct listener *api, struct listener *preview, struct err *err)
{
	int r;

	transport->api = (struct door){
		.chain_path = settings->tls_certificate, .key_path = settings->tls_key};
	transport->preview = preview_door(settings);
	r = open_door(&transport->api, api, err);
	return r == 0 ? open_door(&transport->preview, preview, err) : r;
}

void transport_close(struct transport *transport)
{
	close_door(&transport->api);
	close_door(&transport->preview);
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
