/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/certificate.h"

#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX  (256u * 1024)
#define CHAIN_MAX 16

struct certificate {
	const char *chain_path, *key_path;
	pthread_mutex_t lock;
	SSL_CTX *context; /* of the latest; connections hold their own */
};

static void bio_freep(BIO **bp)
{
	BIO_free(*bp);
}

static void x509_freep(X509 **xp)
{
	X509_free(*xp);
}

static void key_freep(EVP_PKEY **kp)
{
	EVP_PKEY_free(*kp);
}

static void context_freep(SSL_CTX **cp)
{
	SSL_CTX_free(*cp);
}

static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	return text ? text : "no reason is known";
}

/* --- files --- */

static int explain_open(const char *what, const char *path, struct err *err)
{
	if (errno != EACCES)
		return err_sys(err, "open the %s in %s", what, path);
	return err_explain(err, ERR_DENIED, "invalid_setting",
		"let its group be the one of that user, chmod 640 it, and chmod 755 its "
		"directories",
		"the %s in %s cannot be read by the user that sandlotd becomes (uid %u)", what,
		path, geteuid());
}

/* Whoever can read a key is us; whoever can write one makes us somebody else. */
static int check_mode(const char *what, const char *path, int fd, mode_t refused, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a file", path);
	if (st.st_mode & refused)
		return err_explain(err, ERR_DENIED, "invalid_setting", "chmod 640 it",
			"the %s in %s is open to others (mode %03o)", what, path,
			st.st_mode & 0777);
	return 0;
}

/* `refused`: bits that its mode must not have. The content is wiped by the caller if it is secret. */
static int read_file(
	const char *what, const char *path, mode_t refused, struct buf *ret_text, struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;
	int r;

	if (fd < 0)
		return explain_open(what, path, err);
	r = check_mode(what, path, fd, refused, err);
	if (r == 0)
		r = buf_reserve(ret_text, FILE_MAX);
	if (r < 0)
		return r;
	n = read(fd, ret_text->data, FILE_MAX);
	if (n < 0)
		return err_sys(err, "read the %s in %s", what, path);
	if (n == FILE_MAX)
		return err_set(err, ERR_INVALID, "%s is too large for a %s", path, what);
	ret_text->len = (size_t)n;
	return 0;
}

static int use_chain(SSL_CTX *context, const char *path, struct err *err)
{
	auto_(buf_fini) struct buf text = BUF_INIT(FILE_MAX);
	auto_(bio_freep) BIO *bio = NULL;
	int r = read_file("certificate", path, 022, &text, err);

	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(text.data, (int)text.len);
	for (int count = 0; bio && count < CHAIN_MAX; count++) {
		auto_(x509_freep) X509 *one = PEM_read_bio_X509(bio, NULL, NULL, NULL);

		if (!one && count > 0 &&
			ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
			return 0;
		if (!one || (count == 0 ? SSL_CTX_use_certificate(context, one)
					: SSL_CTX_add1_chain_cert(context, one)) != 1)
			break;
	}
	return err_set(err, ERR_INVALID,
		"%s does not hold a certificate that can be used, as PEM: %s", path, reason());
}

/* There is nobody to ask. */
static int no_passphrase(char *text, int size, int is_writing, void *arg)
{
	(void)text, (void)size, (void)is_writing, (void)arg;
	return 0;
}

static int use_key(SSL_CTX *context, const char *path, const char *chain_path, struct err *err)
{
	auto_(buf_fini) struct buf text = BUF_INIT(FILE_MAX);
	auto_(bio_freep) BIO *bio = NULL;
	auto_(key_freep) EVP_PKEY *key = NULL;
	int r = read_file("key", path, 027, &text, err);

	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(text.data, (int)text.len);
	key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
	explicit_bzero(text.data, text.len);
	if (!key)
		return err_set(err, ERR_INVALID,
			"%s does not hold a private key, as PEM and without a passphrase: %s", path,
			reason());
	if (SSL_CTX_use_PrivateKey(context, key) != 1 || SSL_CTX_check_private_key(context) != 1)
		return err_set(err, ERR_INVALID,
			"the key in %s is not that of the certificate in %s", path, chain_path);
	return 0;
}

/* --- what is spoken --- */

/* Of what a client offers, HTTP/1.1; one that offers only other protocols is told so. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void)ssl, (void)arg;
	return SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof(ours) - 1, in,
		       in_len) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* There is one certificate for all. A name that was accepted is known again when a session of TLS 1.2 is resumed. */
static int accept_name(SSL *ssl, int *alert, void *arg)
{
	(void)ssl, (void)alert, (void)arg;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *new_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		return NULL;
	/* A connection that is cut instead of ended: HTTP knows by itself whether something is missing. */
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					     SSL_OP_CIPHER_SERVER_PREFERENCE |
					     SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(context, 1);
	/* Sessions are resumed by tickets, which the clients keep. */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_tlsext_servername_callback(context, accept_name);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
		SSL_CTX_free(context);
		return NULL;
	}
	return context;
}

int certificate_reload(struct certificate *certificate, struct err *err)
{
	auto_(context_freep) SSL_CTX *context = NULL;
	SSL_CTX *before;
	int r;

	ERR_clear_error();
	context = new_context();
	if (!context)
		return err_set(err, ERR_INTERNAL, "cannot start TLS: %s", reason());
	r = use_chain(context, certificate->chain_path, err);
	if (r == 0)
		r = use_key(context, certificate->key_path, certificate->chain_path, err);
	ERR_clear_error();
	if (r < 0)
		return r;
	pthread_mutex_lock(&certificate->lock);
	before = certificate->context;
	certificate->context = take_ptr(&context);
	pthread_mutex_unlock(&certificate->lock);
	SSL_CTX_free(before);
	return 0;
}

int certificate_open(const char *chain_path, const char *key_path,
	struct certificate **ret_certificate, struct err *err)
{
	struct certificate *certificate = mem_new(sizeof(*certificate));
	int r;

	certificate->chain_path = chain_path;
	certificate->key_path = key_path;
	pthread_mutex_init(&certificate->lock, NULL);
	r = certificate_reload(certificate, err);
	if (r < 0)
		certificate_close(certificate);
	else
		*ret_certificate = certificate;
	return r;
}

void certificate_close(struct certificate *certificate)
{
	if (!certificate)
		return;
	SSL_CTX_free(certificate->context);
	pthread_mutex_destroy(&certificate->lock);
	free(certificate);
}

/* --- in use --- */

static SSL_CTX *hold_context(struct certificate *certificate)
{
	SSL_CTX *context;

	pthread_mutex_lock(&certificate->lock);
	context = certificate->context;
	SSL_CTX_up_ref(context);
	pthread_mutex_unlock(&certificate->lock);
	return context;
}

SSL *certificate_accept(struct certificate *certificate, int sock)
{
	auto_(context_freep) SSL_CTX *context = hold_context(certificate);
	SSL *ssl = SSL_new(context);

	if (!ssl || SSL_set_fd(ssl, sock) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}

int certificate_days_left(struct certificate *certificate)
{
	auto_(context_freep) SSL_CTX *context = hold_context(certificate);
	int days = 0, seconds = 0;

	if (ASN1_TIME_diff(&days, &seconds, NULL,
		    X509_get0_notAfter(SSL_CTX_get0_certificate(context))) != 1)
		return 0;
	return seconds < 0 ? days - 1 : days;
}

void certificate_pin(struct certificate *certificate, char pin[CERTIFICATE_PIN_MAX])
{
	auto_(context_freep) SSL_CTX *context = hold_context(certificate);
	X509_PUBKEY *key = X509_get_X509_PUBKEY(SSL_CTX_get0_certificate(context));
	unsigned char *encoded = NULL, digest[SHA256_DIGEST_LENGTH];
	unsigned char text[CERTIFICATE_PIN_MAX];
	int len = i2d_X509_PUBKEY(key, &encoded);

	pin[0] = '\0';
	if (len < 0)
		return;
	SHA256(encoded, (size_t)len, digest);
	OPENSSL_free(encoded);
	EVP_EncodeBlock(text, digest, sizeof(digest));
	snprintf(pin, CERTIFICATE_PIN_MAX, "sha256//%s", (const char *)text);
}
