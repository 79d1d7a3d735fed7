/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/certificate.h"
#include "tls_fixture.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The name on what a new connection would show. */
static void shown(struct certificate *certificate, char name[64])
{
	SSL *ssl = certificate_accept(certificate, 0);

	assert_non_null(ssl);
	X509_NAME_get_text_by_NID(
		X509_get_subject_name(SSL_get_certificate(ssl)), NID_commonName, name, 64);
	SSL_free(ssl);
}

static void a_certificate_is_exchanged_and_a_bad_one_is_not_taken(void **state)
{
	struct tls_files files;
	struct certificate *certificate;
	char name[64], before[CERTIFICATE_PIN_MAX], after[CERTIFICATE_PIN_MAX];
	struct err err;

	(void)state;
	tls_files_make(&files, "one");
	assert_int_equal(certificate_open(files.chain, files.key, &certificate, &err), 0);
	shown(certificate, name);
	assert_string_equal(name, "one");
	assert_int_equal(certificate_days_left(certificate), 9);
	certificate_pin(certificate, before);
	assert_memory_equal(before, "sha256//", 8);
	assert_int_equal(strlen(before), 8 + 44);

	tls_files_renew(&files, "two", 1, 0);
	assert_true(certificate_reload(certificate, &err) < 0);
	assert_non_null(strstr(err.message, "is not that of the certificate"));
	shown(certificate, name);
	assert_string_equal(name, "one");

	tls_files_renew(&files, "three", 1, 1);
	assert_int_equal(certificate_reload(certificate, &err), 0);
	shown(certificate, name);
	assert_string_equal(name, "three");
	certificate_pin(certificate, after);
	assert_string_not_equal(before, after);
	certificate_close(certificate);
	tls_files_remove(&files);
}

static void check_refusal(const struct tls_files *files, const char *reason)
{
	struct certificate *certificate = NULL;
	struct err err = {0};

	assert_true(certificate_open(files->chain, files->key, &certificate, &err) < 0);
	assert_null(certificate);
	if (!strstr(err.message, reason))
		fail_msg("\"%s\" does not say: %s", err.message, reason);
}

static void overwrite(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void what_cannot_be_used_is_refused_with_the_reason(void **state)
{
	static const char cut[] = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
	struct tls_files files;

	(void)state;
	tls_files_make(&files, "one");
	chmod(files.key, 0644);
	check_refusal(&files, "is open to others (mode 644)");
	chmod(files.key, 0660);
	check_refusal(&files, "is open to others (mode 660)");
	chmod(files.key, 0600);
	overwrite(files.key, "nothing");
	check_refusal(&files, "does not hold a private key");
	overwrite(files.chain, "");
	check_refusal(&files, "does not hold a certificate");
	overwrite(files.chain, cut);
	check_refusal(&files, "does not hold a certificate");
	unlink(files.chain);
	check_refusal(&files, "open the certificate in");
	assert_int_equal(mkfifo(files.chain, 0600), 0);
	check_refusal(&files, "is not a file");
	tls_files_remove(&files);
}

static void a_key_with_a_passphrase_is_refused_and_nobody_is_asked(void **state)
{
	struct tls_files files;
	char command[256];

	(void)state;
	tls_files_make(&files, "one");
	snprintf(command, sizeof(command),
		"openssl ec -in %s -out %s.locked -aes256 -passout pass:secret 2>/dev/null && mv "
		"%s.locked %s",
		files.key, files.key, files.key, files.key);
	assert_int_equal(system(command), 0);
	chmod(files.key, 0600);
	check_refusal(&files, "without a passphrase");
	tls_files_remove(&files);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_certificate_is_exchanged_and_a_bad_one_is_not_taken),
		cmocka_unit_test(what_cannot_be_used_is_refused_with_the_reason),
		cmocka_unit_test(a_key_with_a_passphrase_is_refused_and_nobody_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
