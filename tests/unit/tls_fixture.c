/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_fixture.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static X509 *sign(EVP_PKEY *key, const char *name)
{
	X509 *certificate = X509_new();
	X509_NAME *subject = X509_get_subject_name(certificate);

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 10 * 86400 - 60);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(
		subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(certificate, subject);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

void tls_files_renew(const struct tls_files *files, const char *name, int with_chain, int with_key)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = sign(key, name);
	FILE *file;

	if (with_chain) {
		assert_non_null(file = fopen(files->chain, "w"));
		assert_int_equal(PEM_write_X509(file, certificate), 1);
		fclose(file);
	}
	if (with_key) {
		assert_non_null(file = fopen(files->key, "w"));
		assert_int_equal(fchmod(fileno(file), 0600), 0);
		assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
		fclose(file);
	}
	X509_free(certificate);
	EVP_PKEY_free(key);
}

void tls_files_make(struct tls_files *files, const char *name)
{
	snprintf(files->dir, sizeof(files->dir), "/tmp/sandlot-tls-XXXXXX");
	assert_non_null(mkdtemp(files->dir));
	snprintf(files->chain, sizeof(files->chain), "%s/chain.pem", files->dir);
	snprintf(files->key, sizeof(files->key), "%s/key.pem", files->dir);
	tls_files_renew(files, name, 1, 1);
}

void tls_files_remove(struct tls_files *files)
{
	unlink(files->chain);
	unlink(files->key);
	rmdir(files->dir);
}
