/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), for the proofs of wire/proof.h alone.
 *
 * The agent is a static program of musl, which has no hash. The kernel's (AF_ALG) is not in every
 * kernel and closed in many containers, and a library would multiply the size of PID 1. Elsewhere
 * the daemon hashes with OpenSSL; here both ends use the same code.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN   32
#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t len; /* bytes so far */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *sha256);
void sha256_add(struct sha256 *sha256, const void *data, size_t len);
void sha256_end(struct sha256 *sha256, uint8_t ret_digest[SHA256_LEN]);

struct sha256_hmac {
	struct sha256 inner;
	uint8_t key[SHA256_BLOCK];
};

void sha256_hmac_init(struct sha256_hmac *hmac, const void *key, size_t len);
void sha256_hmac_add(struct sha256_hmac *hmac, const void *data, size_t len);

/* Clears what the key could be found from. */
void sha256_hmac_end(struct sha256_hmac *hmac, uint8_t ret_mac[SHA256_LEN]);
