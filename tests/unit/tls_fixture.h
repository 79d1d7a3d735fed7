/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests, made on the spot and signed by themselves. */
#pragma once

struct tls_files {
	char dir[64];
	char chain[96], key[96];
};

/* A directory of its own, with a certificate in it. */
void tls_files_make(struct tls_files *files, const char *name);
void tls_files_remove(struct tls_files *files);

/* Another certificate and key in their place; either may be left as it is. */
void tls_files_renew(const struct tls_files *files, const char *name, int with_chain, int with_key);
