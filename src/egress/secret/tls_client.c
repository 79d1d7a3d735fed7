/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/secret/tls_client.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct tls_trust {
	SSL_CTX *context;
};

struct tls_client {
	SSL *ssl;
};

int tls_trust_open(struct tls_trust **ret_trust, struct err *err)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	struct tls_trust *trust;

	if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_default_verify_paths(context) != 1) {
		SSL_CTX_free(context);
		ERR_clear_error();
		return err_set(err, ERR_INTERNAL, "the trusted certificates cannot be read");
	}
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	/* Bytes to send may move in memory between two attempts, and go in parts. */
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	trust = mem_new(sizeof(*trust));
	trust->context = context;
	*ret_trust = trust;
	return 0;
}

void tls_trust_close(struct tls_trust *trust)
{
	if (!trust)
		return;
	SSL_CTX_free(trust->context);
	free(trust);
}

/* Sets the name that the certificate must be good for; a host name is also sent as SNI. */
static bool set_name(SSL *ssl, const struct authority *server)
{
	const char *name = server->name;
	char address[ADDRESS_TEXT_MAX];

	if (!name[0]) {
		address_format(server->address, address);
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), address) == 1;
	}
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

int tls_client_open(struct tls_trust *trust, int fd, const struct authority *server,
	struct tls_client **ret_client)
{
	static const unsigned char protocol[] = "\x08http/1.1";
	SSL *ssl = SSL_new(trust->context);
	struct tls_client *client;

	if (!ssl || SSL_set_fd(ssl, fd) != 1 || !set_name(ssl, server) ||
		SSL_set_alpn_protos(ssl, protocol, sizeof(protocol) - 1) != 0) {
		SSL_free(ssl);
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_connect_state(ssl);
	client = mem_new(sizeof(*client));
	client->ssl = ssl;
	*ret_client = client;
	return 0;
}

void tls_client_close(struct tls_client *client)
{
	if (!client)
		return;
	SSL_free(client->ssl);
	free(client);
}

/*
 * Makes an errno of a result of OpenSSL, and empties its error queue, which belongs to the thread.
 */
static int fail(struct tls_client *client, int result)
{
	int code = SSL_get_error(client->ssl, result), saved = errno;

	ERR_clear_error();
	switch (code) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return saved > 0 ? -saved : -ECONNRESET;
	default:
		return -ECONNRESET;
	}
}

int tls_client_handshake(struct tls_client *client)
{
	int n, r;

	ERR_clear_error();
	n = SSL_do_handshake(client->ssl);
	if (n == 1)
		return 0;
	r = fail(client, n);
	return r == -EAGAIN ? r : -EPROTO;
}

const char *tls_client_problem(const struct tls_client *client)
{
	long result = SSL_get_verify_result(client->ssl);

	return result == X509_V_OK ? "it does not speak TLS as we do"
				   : X509_verify_cert_error_string(result);
}

ssize_t tls_client_read(struct tls_client *client, void *data, size_t len)
{
	int n;

	ERR_clear_error();
	n = SSL_read(client->ssl, data, len > INT_MAX ? INT_MAX : (int)len);
	return n > 0 ? n : fail(client, n);
}

ssize_t tls_client_write(struct tls_client *client, const void *data, size_t len)
{
	int n, r;

	ERR_clear_error();
	n = SSL_write(client->ssl, data, len > INT_MAX ? INT_MAX : (int)len);
	if (n > 0)
		return n;
	r = fail(client, n);
	return r == 0 ? -EPIPE : r;
}
